//! Architectures: `sm_80`, `sm_90a`, `sm_100f`, and which of them PTX may run on.
//!
//! The number is ten times the major plus the minor compute capability. `a` code runs on exactly its architecture; `f`
//! code on its family, which is the same major with the same or a later minor; all other PTX on every later one.
//! (PTX manual, `.target`; CUDA programming guide, feature sets of compute capabilities.)

use std::fmt;
use std::str::FromStr;

/// An architecture, with its suffix: ordered by number, then plain, family, specific.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Arch {
    /// 80, 90, 121: ten times the major number plus the minor.
    pub sm: u32,
    /// What follows the number.
    pub suffix: Suffix,
}

/// What follows an architecture's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Suffix {
    /// Nothing: for this and all later architectures.
    #[default]
    None,
    /// `f`: for this architecture and later ones of its family.
    Family,
    /// `a`: for this architecture alone.
    Specific,
}

impl Arch {
    /// The architecture of that number, without a suffix.
    pub fn new(sm: u32) -> Self {
        Arch { sm, suffix: Suffix::None }
    }

    /// May a device of compute capability `device` / 10 . `device` % 10 run PTX made for this?
    ///
    /// ```
    /// use nt_object::Arch;
    /// let runs = |arch: &str, device| arch.parse::<Arch>().unwrap().runs_on(device);
    /// assert!(runs("sm_80", 86) && !runs("sm_90", 86));
    /// assert!(runs("sm_90a", 90) && !runs("sm_90a", 100)); // `a` is not forward compatible
    /// assert!(runs("sm_100f", 103) && !runs("sm_100f", 120)); // `f` is, inside its family
    ///
    /// let sm_80 = Arch::new(80);
    /// assert!(sm_80.runs_on(90) && !sm_80.machine_code_runs_on(90) && sm_80.machine_code_runs_on(86));
    /// ```
    pub fn runs_on(self, device: u32) -> bool {
        match self.suffix {
            Suffix::None => self.sm <= device,
            Suffix::Family => self.sm <= device && self.sm / 10 == device / 10,
            Suffix::Specific => self.sm == device,
        }
    }

    /// May it run machine code made for this? It runs on its own and on later architectures of the same major number.
    pub fn machine_code_runs_on(self, device: u32) -> bool {
        self.runs_on(device) && self.sm / 10 == device / 10
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = match self.suffix {
            Suffix::None => "",
            Suffix::Family => "f",
            Suffix::Specific => "a",
        };
        write!(f, "sm_{}{suffix}", self.sm)
    }
}

/// What was taken for an architecture and is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no architecture: `sm_80`, `90a` and `compute_100f` are")]
pub struct ArchError(String);

impl FromStr for Arch {
    type Err = ArchError;

    /// `sm_90a`, `compute_90a` or `90a`.
    fn from_str(word: &str) -> Result<Self, ArchError> {
        let error = || ArchError(word.to_owned());
        let number = word.strip_prefix("sm_").or_else(|| word.strip_prefix("compute_")).unwrap_or(word);
        let (number, suffix) = match number.as_bytes().last() {
            Some(b'a') => (&number[..number.len() - 1], Suffix::Specific),
            Some(b'f') => (&number[..number.len() - 1], Suffix::Family),
            _ => (number, Suffix::None),
        };
        // `+8` and the empty word parse as no number that anyone means.
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(error());
        }
        Ok(Arch { sm: number.parse().map_err(|_| error())?, suffix })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(word: &str, expected: Option<&str>) {
        let found = word.parse::<Arch>().ok().map(|arch| arch.to_string());
        assert_eq!(found.as_deref(), expected, "{word}");
    }

    #[test]
    fn names_keep_number_and_suffix() {
        check("sm_75", Some("sm_75"));
        check("sm_90a", Some("sm_90a"));
        check("compute_100f", Some("sm_100f"));
        check("121", Some("sm_121"));
        check("103a", Some("sm_103a"));
        for word in ["", "sm_", "a", "sm_9x", "gfx90a", "sm_-1", "+80", "sm_99999999999", "sm_90af", "sm_é"]
        {
            check(word, None);
        }
    }

    #[test]
    fn order_is_by_number_then_suffix() {
        let mut all: Vec<Arch> =
            ["120", "90a", "100f", "90", "100a", "80"].map(|w| w.parse().unwrap()).into();
        all.sort();
        let all: Vec<String> = all.iter().map(Arch::to_string).collect();
        assert_eq!(all, ["sm_80", "sm_90", "sm_90a", "sm_100f", "sm_100a", "sm_120"]);
    }
}
