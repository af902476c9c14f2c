//! Globs: names of kernels and functions, opcodes.

/// Does the whole of `text` match `glob`, in which `*` stands for anything and `?` for one character?
pub fn glob_matches(glob: &str, text: &str) -> bool {
    let (glob, text): (Vec<char>, Vec<char>) = (glob.chars().collect(), text.chars().collect());
    let (mut g, mut t) = (0, 0);
    // Where to go back to when a match fails: behind the last `*`, one more character swallowed by it. Earlier stars
    // need no second try, so this is quadratic at worst.
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        match glob.get(g) {
            Some('*') => {
                retry = Some((g + 1, t));
                g += 1;
            }
            Some(&c) if c == '?' || Some(&c) == text.get(t) => (g, t) = (g + 1, t + 1),
            _ => match retry {
                Some((star, swallowed)) => {
                    retry = Some((star, swallowed + 1));
                    (g, t) = (star, swallowed + 1);
                }
                None => return false,
            },
        }
    }
    glob.iter().skip(g).all(|&c| c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs() {
        let matches = |glob: &str, yes: &[&str], no: &[&str]| {
            yes.iter().for_each(|text| assert!(glob_matches(glob, text), "`{glob}` is to match `{text}`"));
            no.iter()
                .for_each(|text| assert!(!glob_matches(glob, text), "`{glob}` is not to match `{text}`"));
        };
        matches("gemm", &["gemm"], &["gemm_", "xgemm", ""]);
        matches("gemm*", &["gemm", "gemm_kernel"], &["xgemm"]);
        matches("*reduce*", &["reduce", "block_reduce_sum"], &["redce"]);
        matches("a*b*c", &["abc", "aXbYbZc"], &["ab", "acb"]);
        matches("k?", &["k1"], &["k", "k12"]);
        matches("*", &["", "x"], &[]);
        matches("", &[""], &["x"]);
    }
}
