//! What `ptxas -v` says of kernels, read by the names of its fields.
//!
//! ```text
//! ptxas info    : Compiling entry function 'histogram' for 'sm_90'
//! ptxas info    : Function properties for histogram
//!     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
//! ptxas info    : Used 12 registers, used 1 barriers, 1024 bytes smem
//! ```
//!
//! Versions differ: 11.8 to 12.4 say nothing of barriers, 12.9 adds a line on the time, and the order of a line's
//! fields is nobody's promise. So a line is a list of `NUMBER words`, each field is known by its words, and what is
//! not known is passed over. A kernel without a summary is absent, which is "unknown" to the reader, not an error.

use std::collections::BTreeMap;

/// What one kernel takes. A field that the assembler did not name stays `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Registers a thread.
    pub registers: Option<u32>,
    /// Bytes of spill stores.
    pub spill_stores: Option<u32>,
    /// Bytes of spill loads.
    pub spill_loads: Option<u32>,
    /// Bytes of stack a thread: the cumulative size where it is given, else the kernel's own frame.
    pub stack: Option<u32>,
    /// Bytes of static shared memory a block.
    pub shared: Option<u32>,
    /// Named barriers.
    pub barriers: Option<u32>,
}

/// Something that the assembler has to say beside its summary.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Remark {
    /// How much it weighs.
    pub weight: Weight,
    /// The number of a notice, such as `C7514`.
    pub code: Option<String>,
    /// The line of the text that was assembled, if one is named.
    pub line: Option<u32>,
    /// The words.
    pub text: String,
}

/// How much a [`Remark`] weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// `info` with a C75xx code: code was serialised or a wait put in.
    Notice,
    /// `warning`
    Warning,
    /// `error` and `fatal`
    Error,
}

/// All that was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verbose {
    /// By mangled name.
    pub kernels: BTreeMap<String, Usage>,
    /// In the order they were said.
    pub remarks: Vec<Remark>,
}

/// Reads the output of `ptxas -v`; `source` is the path that it was given, which its messages repeat.
pub fn read(output: &str, source: &str) -> Verbose {
    let mut all = Verbose::default();
    // The kernel whose summary is being given, and whether the next indented line is its own frame: properties of the
    // device functions it calls follow its `Used` line and do not count to it.
    let mut kernel: Option<String> = None;
    let mut own_frame = false;
    for line in output.lines() {
        let Some(message) = Message::of(line, source) else {
            if let (true, Some(name)) = (own_frame && line.starts_with(' '), &kernel) {
                frame(all.kernels.entry(name.clone()).or_default(), line);
            }
            continue;
        };
        if let Some(weight) = message.weight {
            // The last line of every failure says no more than that it is one.
            if message.text != "Ptx assembly aborted due to errors" {
                let (code, text) = split_code(message.text);
                let line = message.line;
                all.remarks.push(Remark { weight, code, line, text: text.to_owned() });
            }
        } else if let Some(name) = quoted(message.text, "Compiling entry function ") {
            kernel = Some(name.to_owned());
            all.kernels.entry(name.to_owned()).or_default();
        } else if let Some(name) = message.text.strip_prefix("Function properties for ") {
            own_frame = kernel.as_deref() == Some(name.trim().trim_matches('\''));
        } else if let (Some(name), true) = (&kernel, message.text.starts_with("Used ")) {
            used(all.kernels.entry(name.clone()).or_default(), message.text);
        }
    }
    // A kernel that was only announced has no summary.
    all.kernels.retain(|_, usage| *usage != Usage::default());
    all
}

/// A line that begins a message: `ptxas info    : TEXT`, `ptxas FILE, line 9; error   : TEXT`.
struct Message<'o> {
    /// `None` for plain information.
    weight: Option<Weight>,
    line: Option<u32>,
    text: &'o str,
}

impl<'o> Message<'o> {
    fn of(line: &'o str, source: &str) -> Option<Self> {
        let rest = line.strip_prefix("ptxas ")?;
        let (place, rest) = match rest.strip_prefix(source).and_then(|rest| rest.strip_prefix(", line ")) {
            Some(rest) => {
                let (number, rest) = rest.split_once(';')?;
                (number.trim().parse().ok(), rest)
            }
            None => (None, rest),
        };
        let (word, text) = rest.split_once(':')?;
        let (word, text) = (word.trim(), text.trim());
        let weight = match word {
            "fatal" | "error" => Some(Weight::Error),
            "warning" => Some(Weight::Warning),
            _ if text.starts_with("(C75") => Some(Weight::Notice),
            _ => None,
        };
        Some(Message { weight, line: place, text })
    }
}

/// `(C7514) Potential …` is a code and words.
fn split_code(text: &str) -> (Option<String>, &str) {
    match text.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        Some((code, rest)) if code.starts_with('C') && code[1..].bytes().all(|b| b.is_ascii_digit()) => {
            (Some(code.to_owned()), rest.trim_start())
        }
        _ => (None, text),
    }
}

/// The name in quotes behind `lead`.
fn quoted<'t>(text: &'t str, lead: &str) -> Option<&'t str> {
    let rest = text.strip_prefix(lead)?.strip_prefix('\'')?;
    rest.split_once('\'').map(|(name, _)| name)
}

/// `0 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads`
fn frame(usage: &mut Usage, line: &str) {
    for (number, words) in fields(line) {
        match words {
            // The cumulative size, where a `Used` line gives it, is the larger and comes later.
            "bytes stack frame" => usage.stack = Some(number),
            "bytes spill stores" => usage.spill_stores = Some(number),
            "bytes spill loads" => usage.spill_loads = Some(number),
            _ => {}
        }
    }
}

/// `Used 33 registers, used 2 barriers, 64 bytes cumulative stack size, 400 bytes cmem[0]`
fn used(usage: &mut Usage, text: &str) {
    for (number, words) in fields(text) {
        match words {
            "registers" => usage.registers = Some(number),
            "barriers" => usage.barriers = Some(number),
            "bytes smem" => usage.shared = Some(number),
            "bytes cumulative stack size" => usage.stack = Some(number),
            _ => {}
        }
    }
}

/// The `NUMBER words` of a list separated by commas; `used` before a number is a filler.
fn fields(text: &str) -> impl Iterator<Item = (u32, &str)> {
    text.split(',').filter_map(|field| {
        let field = field.trim();
        let field = field.strip_prefix("Used ").or_else(|| field.strip_prefix("used ")).unwrap_or(field);
        let (number, words) = field.split_once(' ')?;
        // `8+0 bytes smem` of very old versions: static and system, of which the first counts.
        let number = number.split('+').next()?.parse().ok()?;
        Some((number, words.trim()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `name: regs=… stores=… loads=… stack=… smem=… bars=…`, a line a kernel, then the remarks.
    fn check(output: &str, expected: &str) {
        let all = read(output, "/t/k.ptx");
        let show = |value: Option<u32>| value.map_or("?".to_owned(), |v| v.to_string());
        let mut text = String::new();
        for (name, u) in &all.kernels {
            let numbers =
                [u.registers, u.spill_stores, u.spill_loads, u.stack, u.shared, u.barriers].map(show);
            text += &format!("{name}: {}\n", numbers.join(" "));
        }
        for r in &all.remarks {
            let line = show(r.line);
            text += &format!("{:?} {} line {line}: {}\n", r.weight, r.code.as_deref().unwrap_or("-"), r.text);
        }
        assert_eq!(text, expected);
    }

    #[test]
    fn version_12_4_names_no_barriers() {
        check(
            "ptxas info    : 0 bytes gmem\n\
             ptxas info    : Compiling entry function 'spmv_csr' for 'sm_80'\n\
             ptxas info    : Function properties for spmv_csr\n    \
                 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
             ptxas info    : Used 32 registers, 396 bytes cmem[0], 8 bytes cmem[2]\n\
             ptxas info    : Compiling entry function 'histogram' for 'sm_80'\n\
             ptxas info    : Function properties for histogram\n    \
                 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
             ptxas info    : Used 12 registers, 1024 bytes smem, 380 bytes cmem[0]\n",
            "histogram: 12 0 0 0 1024 ?\nspmv_csr: 32 0 0 0 ? ?\n",
        );
    }

    #[test]
    fn version_13_0_with_spills_and_a_function_that_is_called() {
        check(
            "ptxas info    : Overriding maximum register limit 256 for 'call' with  32 of maxrregcount option\n\
             ptxas warning : Stack size for entry function 'call' cannot be statically determined\n\
             ptxas info    : 0 bytes gmem\n\
             ptxas info    : Compiling entry function 'call' for 'sm_90'\n\
             ptxas info    : Function properties for call\n    \
                 0 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n\
             ptxas info    : Used 24 registers, used 0 barriers\n\
             ptxas info    : Compile time = 6.850 ms\n\
             ptxas info    : Function properties for _Z3reci\n    \
                 24 bytes stack frame, 20 bytes spill stores, 20 bytes spill loads\n\
             ptxas info    : Compiling entry function 'stack' for 'sm_90'\n\
             ptxas info    : Function properties for stack\n    \
                 400 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
             ptxas info    : Used 32 registers, used 0 barriers, 448 bytes cumulative stack size\n\
             ptxas info    : Compile time = 6.002 ms\n",
            "call: 24 8 12 0 ? 0\nstack: 32 0 0 448 ? 0\n\
             Warning - line ?: Stack size for entry function 'call' cannot be statically determined\n",
        );
    }

    #[test]
    fn fields_of_a_later_version_in_another_order() {
        check(
            "ptxas info    : Compiling entry function 'k' for 'sm_90'\n\
             ptxas info    : Used 400 bytes cmem[0], 3 bytes tensor memory, 64 bytes cumulative stack size, used 2 \
             barriers, 7 unicorns, 33 registers\n\
             ptxas info    : Wholly new line, 12 registers\n",
            "k: 33 ? ? 64 ? 2\n",
        );
    }

    #[test]
    fn a_kernel_without_a_summary_is_absent() {
        check("ptxas info    : Compiling entry function 'k' for 'sm_90'\n", "");
        check("", "");
        check("ptxas info    : Used 3 registers\nptxas info    : Used\nptxas \n:\n", "");
    }

    #[test]
    fn notices_of_serialised_code() {
        check(
            "ptxas info    : (C7517) warpgroup.wait is injected in around line 11 by compiler to allow use of \
             registers defined by GMMA in function 'wg'\n\
             ptxas info    : (C7514) Potential Performance Loss: wgmma.mma_async instructions are serialized\n",
            "Notice C7517 line ?: warpgroup.wait is injected in around line 11 by compiler to allow use of \
             registers defined by GMMA in function 'wg'\n\
             Notice C7514 line ?: Potential Performance Loss: wgmma.mma_async instructions are serialized\n",
        );
    }

    #[test]
    fn errors_name_their_line() {
        check(
            "ptxas /t/k.ptx, line 53; fatal   : Parsing error near '}': syntax error\n\
             ptxas fatal   : Ptx assembly aborted due to errors\n",
            "Error - line 53: Parsing error near '}': syntax error\n",
        );
        check(
            "ptxas fatal   : Value 'sm_100' is not defined for option 'gpu-name'\n",
            "Error - line ?: Value 'sm_100' is not defined for option 'gpu-name'\n",
        );
    }
}
