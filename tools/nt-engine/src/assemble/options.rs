//! What an image wants its PTX to be assembled with.
//!
//! ```text
//! fatbin:  ` -maxrregcount=32  --fmad false `     ->   -maxrregcount=32 -fmad=false
//! cubin:   `-maxrregcount 64 -O 0 -fmad false`    ->   -maxrregcount=64 -O=0 -fmad=false
//! ```
//!
//! They stand in the image because the code depends on them: a kernel that is launched in blocks of 1024 threads may
//! need `-maxrregcount=64`, one whose sums are compared with a CPU's `-fmad=false`. The twin gets the same. The text is
//! the program's, so only options that are known to bear on code are taken, each with a plain word for a value: none
//! that names a file, and none of messages. What is not taken is told.

/// Options for an assembler.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    words: Vec<String>,
    left_out: Vec<String>,
}

/// An option by both its names, without dashes, and what is known of it.
struct Known {
    long: &'static str,
    short: &'static str,
    value: bool,
    bears_on_code: bool,
}

const fn known(long: &'static str, short: &'static str, value: bool, bears_on_code: bool) -> Known {
    Known { long, short, value, bears_on_code }
}

/// As `ptxas --help` of 11.8 to 13.5 has them.
const KNOWN: [Known; 37] = [
    known("Ofast-compile", "Ofc", true, true),
    known("allow-expensive-optimizations", "allow-expensive-optimizations", true, true),
    known("def-load-cache", "dlcm", true, true),
    known("def-store-cache", "dscm", true, true),
    known("device-function-maxrregcount", "func-maxrregcount", true, true),
    known("device-stack-protector", "device-stack-protector", true, true),
    known("disable-optimizer-constants", "disable-optimizer-consts", false, true),
    known("dont-merge-basicblocks", "no-bb-merge", false, true),
    known("fmad", "fmad", true, true),
    known("force-load-cache", "flcm", true, true),
    known("force-store-cache", "fscm", true, true),
    known("legacy-bar-warp-wide-behavior", "legacy-bar-warp-wide-behavior", false, true),
    known("make-errors-visible-at-exit", "make-errors-visible-at-exit", false, true),
    known("maxntid", "maxntid", true, true),
    known("maxrregcount", "maxrregcount", true, true),
    known("minnctapersm", "minnctapersm", true, true),
    known("opt-level", "O", true, true),
    known("optimize-float-atomics", "opt-fp-atomics", false, true),
    known("override-directive-values", "override-directive-values", false, true),
    known("register-usage-level", "regUsageLevel", true, true),
    known("return-at-end", "ret-end", false, true),
    // Messages, debug data, what is linked later, and what the assembler is told anyway.
    known("compile-only", "c", false, false),
    known("device-debug", "g", false, false),
    known("disable-warnings", "w", false, false),
    known("generate-line-info", "lineinfo", false, false),
    known("gpu-name", "arch", true, false),
    known("machine", "m", true, false),
    known("preserve-relocs", "preserve-relocs", false, false),
    known("split-compile", "split-compile", true, false),
    known("suppress-debug-info", "suppress-debug-info", false, false),
    known("suppress-double-demote-warning", "suppress-double-demote-warning", false, false),
    known("suppress-stack-size-warning", "suppress-stack-size-warning", false, false),
    known("verbose", "v", false, false),
    known("warn-on-double-precision-use", "warn-double-usage", false, false),
    known("warn-on-local-memory-usage", "warn-lmem-usage", false, false),
    known("warn-on-spills", "warn-spills", false, false),
    known("warning-as-error", "Werror", false, false),
];

/// No value that is taken is longer.
const LONGEST: usize = 64;

impl Options {
    /// Takes from `text`, words of a command line, what may be taken.
    pub fn parse(text: &str) -> Options {
        let mut options = Options::default();
        let mut words = text.split_ascii_whitespace();
        while let Some(word) = words.next() {
            let (name, mut value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => {
                    match word.strip_prefix("-O").filter(|level| level.bytes().all(|b| b.is_ascii_digit())) {
                        Some(level) if !level.is_empty() => ("-O", Some(level)),
                        _ => (word, None),
                    }
                }
            };
            let named = |known: &&Known| {
                name.strip_prefix("--") == Some(known.long) || name.strip_prefix('-') == Some(known.short)
            };
            let Some(known) = KNOWN.iter().find(named) else {
                options.left_out.push(word.to_owned());
                continue;
            };
            if known.value && value.is_none() {
                value = words.next();
            }
            if !known.bears_on_code {
                continue;
            }
            match value {
                None if !known.value => options.words.push(format!("-{}", known.short)),
                Some(value) if known.value && is_plain(value) => {
                    options.words.push(format!("-{}={value}", known.short));
                }
                _ => options.left_out.push(word.to_owned()),
            }
        }
        options
    }

    /// These, and those in `text`, which take the place of ours of the same name.
    #[must_use]
    pub fn with(&self, text: &str) -> Options {
        let Options { words, left_out } = Options::parse(text);
        let name = |word: &str| word.split('=').next().unwrap_or_default().to_owned();
        let mut both = self.clone();
        both.words.retain(|word| words.iter().all(|other| name(other) != name(word)));
        both.words.extend(words);
        both.left_out.extend(left_out);
        both
    }

    /// The words for the command line, in their order.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// What was not taken, as it stood.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }
}

fn is_plain(value: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b',' || b == b'_';
    !value.is_empty() && value.len() <= LONGEST && value.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, words: &str, left_out: &str) {
        let options = Options::parse(text);
        assert_eq!(
            (options.words().join(" ").as_str(), options.left_out().join(" ").as_str()),
            (words, left_out)
        );
    }

    /// What nvcc 13.0 puts into fatbins for `-maxrregcount=32`, `-fmad=false`, `-Xptxas -O1` and so on.
    #[test]
    fn as_fatbins_have_them() {
        check("", "", "");
        check(" -maxrregcount=32 ", "-maxrregcount=32", "");
        check(" --fmad false ", "-fmad=false", "");
        check("-O1  ", "-O=1", "");
        check("--maxrregcount=40 -dlcm=cg  ", "-maxrregcount=40 -dlcm=cg", "");
        check(" -g --dont-merge-basicblocks --return-at-end ", "-no-bb-merge -ret-end", "");
    }

    #[test]
    fn as_cubins_have_them() {
        check("-maxrregcount 64 -O 0 -fmad false", "-maxrregcount=64 -O=0 -fmad=false", "");
        check("-v --gpu-name sm_90 -m 64 -lineinfo -regUsageLevel 5", "-regUsageLevel=5", "");
    }

    #[test]
    fn later_options_take_the_place_of_earlier_ones() {
        let options =
            Options::parse("-maxrregcount=32 --fmad false -x").with("-maxrregcount=64 -O1 CU_JIT=1");
        assert_eq!(options.words(), ["-fmad=false", "-maxrregcount=64", "-O=1"]);
        assert_eq!(options.left_out(), ["-x", "CU_JIT=1"]);
    }

    #[test]
    fn nothing_else_is_taken() {
        check("-o /etc/passwd", "", "-o /etc/passwd");
        check("--options-file=x -optf x", "", "--options-file=x -optf x");
        check("-maxrregcount=../x -fmad", "", "-maxrregcount=../x -fmad");
        check("--maxntid=8,8,1 --return-at-end=yes -Oh", "-maxntid=8,8,1", "--return-at-end=yes -Oh");
        check(&format!("-dlcm={}", "c".repeat(65)), "", &format!("-dlcm={}", "c".repeat(65)));
    }
}
