//! Which kernels: `-k REGEX` and `-k =NAME` against mangled and demangled names.
//!
//! ```text
//! -k =_Z4gemmPfi   the kernel of exactly that symbol
//! -k '=gemm(float*, int)'   likewise, as a C++ programmer writes it
//! -k 'gemm|flash'  every kernel with a match anywhere in either of its names
//! ```
//!
//! Several choices add up; none chooses all. What a choice did not find is told with the names that are nearest.

use std::borrow::Cow;

/// A parsed `-k`.
#[derive(Debug, Clone)]
pub enum Choice {
    /// `=NAME`
    Name(String),
    /// `REGEX`
    Pattern(regex::Regex),
}

impl std::str::FromStr for Choice {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word.strip_prefix('=') {
            Some("") => Err("`=` stands before a kernel's name".to_owned()),
            Some(name) => Ok(Choice::Name(name.to_owned())),
            // The error of a pattern draws it, on several lines, which suits a terminal.
            None => regex::Regex::new(word).map(Choice::Pattern).map_err(|error| error.to_string()),
        }
    }
}

impl std::fmt::Display for Choice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Choice::Name(name) => write!(f, "={name}"),
            Choice::Pattern(pattern) => write!(f, "{pattern}"),
        }
    }
}

impl Choice {
    fn takes(&self, mangled: &str, demangled: &str) -> bool {
        match self {
            Choice::Name(name) => name == mangled || name == demangled,
            Choice::Pattern(pattern) => pattern.is_match(mangled) || pattern.is_match(demangled),
        }
    }

    /// What was typed.
    fn word(&self) -> &str {
        match self {
            Choice::Name(name) => name,
            Choice::Pattern(pattern) => pattern.as_str(),
        }
    }
}

/// Those of `kernels` (mangled names) that the choices take, in their order; all if there are no choices.
pub fn choose<'k>(choices: &[Choice], kernels: impl IntoIterator<Item = &'k str>) -> Vec<&'k str> {
    let kernels = kernels.into_iter();
    if choices.is_empty() {
        return kernels.collect();
    }
    let taken = |name: &&str| {
        let demangled = demangle(name);
        choices.iter().any(|choice| choice.takes(name, &demangled))
    };
    kernels.filter(taken).collect()
}

/// The names (mangled) that are nearest to what the choices ask for, at most `most`: by a slip of the fingers first,
/// then those that hold, or are held by, a word of the choice.
pub fn nearest<'k>(choices: &[Choice], kernels: &[&'k str], most: usize) -> Vec<&'k str> {
    let mut found: Vec<&str> = Vec::new();
    for choice in choices {
        let word = choice.word();
        // Of a demangled name the part before the parameters is what people type.
        let short: Vec<(String, &str)> =
            kernels.iter().map(|&k| (short(&demangle(k)).to_owned(), k)).collect();
        let slip = nt_diag::nearest(word, kernels.iter().copied()).or_else(|| {
            let near = nt_diag::nearest(word, short.iter().map(|(name, _)| name.as_str()))?;
            short.iter().find(|(name, _)| name == near).map(|&(_, kernel)| kernel)
        });
        found.extend(slip);
        let lower = word.to_lowercase();
        let parts = || lower.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|part| part.len() >= 3);
        found.extend(kernels.iter().filter(|kernel| {
            let kernel = kernel.to_lowercase();
            parts().any(|part| kernel.contains(part) || part.contains(&kernel))
        }));
    }
    let mut seen = std::collections::BTreeSet::new();
    found.retain(|name| seen.insert(*name));
    found.truncate(most);
    found
}

/// The name without its parameters and template arguments.
fn short(demangled: &str) -> &str {
    let end = demangled.find(['(', '<']).unwrap_or(demangled.len());
    let name = &demangled[..end];
    // `void gemm<float>(…)`: a template's return type is part of its symbol.
    name.rsplit(' ').next().unwrap_or(name)
}

/// Names beyond this are left as they are.
const LONGEST: usize = 1 << 14;

/// A kernel's name as its programmer wrote it; the symbol itself where it is not mangled, or not by a rule we know.
pub fn demangle(symbol: &str) -> Cow<'_, str> {
    if !symbol.starts_with('_') || symbol.len() > LONGEST {
        return Cow::Borrowed(symbol);
    }
    // Rust's names first: the old ones are also C++ names, with a hash that the C++ rule would show.
    if let Ok(name) = rustc_demangle::try_demangle(symbol) {
        return Cow::Owned(format!("{name:#}"));
    }
    let mut out = Bounded(String::new());
    let options = cpp_demangle::DemangleOptions::default();
    match cpp_demangle::Symbol::new(symbol).map(|name| name.structured_demangle(&mut out, &options)) {
        Ok(Ok(())) => Cow::Owned(out.0),
        _ => Cow::Borrowed(symbol),
    }
}

/// Takes at most [`LONGEST`] bytes: each substitution may double what is written, so that a symbol of 300 bytes can
/// stand for a name of gigabytes.
struct Bounded(String);

impl cpp_demangle::DemangleWrite for Bounded {
    fn write_string(&mut self, text: &str) -> std::fmt::Result {
        if self.0.len() + text.len() > LONGEST {
            return Err(std::fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNELS: [&str; 6] = [
        "gemm",
        "gemm_kernel",
        "_Z9gemm_tilePfi",                      // gemm_tile(float*, int)
        "_ZN2at6native7softmaxIfEEvPT_i",       // void at::native::softmax<float>(float*, int)
        "_ZN5saxpy6kernel17h0123456789abcdefE", // saxpy::kernel
        "hidden",
    ];

    fn check(words: &[&str], expected: &[&str]) {
        let choices: Vec<Choice> = words.iter().map(|word| word.parse().unwrap()).collect();
        assert_eq!(choose(&choices, KERNELS), expected, "{words:?}");
    }

    #[test]
    fn names_are_exact_and_patterns_are_not_anchored() {
        check(&["=gemm"], &["gemm"]);
        check(&["gemm"], &["gemm", "gemm_kernel", "_Z9gemm_tilePfi"]);
        check(&["^gemm$", "=hidden"], &["gemm", "hidden"]);
        check(&["=gem"], &[]);
        check(&[], &KERNELS);
    }

    #[test]
    fn names_count_as_their_programmers_write_them() {
        check(&["=gemm_tile(float*, int)"], &["_Z9gemm_tilePfi"]);
        check(&["at::native::"], &["_ZN2at6native7softmaxIfEEvPT_i"]);
        check(&["=saxpy::kernel"], &["_ZN5saxpy6kernel17h0123456789abcdefE"]);
        check(&["^_ZN"], &[KERNELS[3], KERNELS[4]]);
    }

    #[test]
    fn what_is_no_choice() {
        assert!("=".parse::<Choice>().is_err());
        assert!("(".parse::<Choice>().unwrap_err().contains("unclosed group"));
    }

    #[test]
    fn the_nearest_are_named() {
        let near = |word: &str| nearest(&[word.parse().unwrap()], &KERNELS, 3);
        assert_eq!(near("=gem"), ["gemm", "gemm_kernel", "_Z9gemm_tilePfi"]);
        assert_eq!(near("=hiden"), ["hidden"]);
        assert_eq!(near("gemm_tyle"), ["_Z9gemm_tilePfi", "gemm"]);
        assert_eq!(near("=at::native::softmx"), ["_ZN2at6native7softmaxIfEEvPT_i"]);
        assert!(near("=unrelated_thing").is_empty());
    }

    #[test]
    fn strange_names_stay() {
        for name in ["", "_", "_Z", "_Z9", "_ZN", "$_x", "kernel_0d1d2de"] {
            assert_eq!(demangle(name), name);
        }
        let long = format!("_Z{}", "N".repeat(100_000));
        assert_eq!(demangle(&long), long);
        let _ = demangle(&format!("_Z1f{}", "P".repeat(10_000)));
        // Each pair is a pair of the pair before: 2³⁴ `int`s.
        let digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        let pairs: String = digits.chars().take(33).map(|d| format!("S_IS{d}_S{d}_E")).collect();
        let bomb = format!("_Z1fSt4pairIiiE{pairs}");
        assert_eq!(demangle(&bomb), bomb);
    }
}
