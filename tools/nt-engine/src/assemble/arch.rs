//! Which architecture to assemble for: what the module is written for, and what the device is.
//!
//! | module's target | device | assembled for |
//! |---|---|---|
//! | `sm_80` | 9.0 | `sm_90`: plain PTX runs on all later devices |
//! | `sm_90a` | 9.0 | `sm_90a`: the suffix is kept, its instructions need it |
//! | `sm_90a` | 10.0 | refused: `a` holds for its own device alone |
//! | `sm_100f` | 10.3 | `sm_103f`: `f` holds for later devices of the family |
//! | `sm_90` | 8.0 | refused: the device is older |
//!
//! PTX ISA 9.0, section 11.1.2 (`.target`).

use std::fmt;

/// `sm_90a`
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arch {
    /// 90 for 9.0, 103 for 10.3.
    pub number: u32,
    /// What stands behind the number.
    pub suffix: Suffix,
}

/// What stands behind an architecture's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Suffix {
    /// Nothing: holds for all later devices.
    None,
    /// `f`: holds for later devices of the family.
    Family,
    /// `a`: holds for this device alone.
    Own,
}

impl Arch {
    /// An architecture without a suffix.
    pub fn plain(number: u32) -> Self {
        Arch { number, suffix: Suffix::None }
    }

    /// Reads `sm_90a`.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix("sm_")?;
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, suffix) = rest.split_at(digits);
        let suffix = match suffix {
            "" => Suffix::None,
            "f" => Suffix::Family,
            "a" => Suffix::Own,
            _ => return None,
        };
        Some(Arch { number: number.parse().ok()?, suffix })
    }

    /// The architecture for a module written for `self` on a device of compute capability `device` (90 for 9.0).
    ///
    /// # Errors
    /// It cannot run there; why is said.
    pub fn on(self, device: u32) -> Result<Arch, String> {
        let family = |number: u32| number / 10;
        match self.suffix {
            Suffix::Own if self.number != device => {
                Err(format!("PTX for {self} runs on that architecture alone, and the device is sm_{device}"))
            }
            Suffix::Family if family(self.number) != family(device) || self.number > device => Err(format!(
                "PTX for {self} runs on later devices of its family, and the device is sm_{device}"
            )),
            Suffix::None if self.number > device => {
                Err(format!("PTX for {self} needs a later device than sm_{device}"))
            }
            suffix => Ok(Arch { number: device, suffix }),
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = match self.suffix {
            Suffix::None => "",
            Suffix::Family => "f",
            Suffix::Own => "a",
        };
        write!(f, "sm_{}{suffix}", self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(target: &str, device: u32, expected: &str) {
        let arch = Arch::parse(target).and_then(|arch| arch.on(device).ok());
        assert_eq!(
            arch.map_or("refused".to_owned(), |arch| arch.to_string()),
            expected,
            "{target} on {device}"
        );
    }

    // What ptxas 13.0 says of the same pairs is in the comments.
    #[test]
    fn a_target_meets_a_device() {
        check("sm_50", 90, "sm_90");
        check("sm_90", 90, "sm_90");
        check("sm_90", 80, "refused"); // SM version specified by .target is higher than default SM version assumed
        check("sm_90a", 90, "sm_90a");
        check("sm_90a", 100, "refused"); // cannot be compiled to future architecture
        check("sm_100f", 100, "sm_100f"); // takes sm_100, sm_100f and sm_100a alike
        check("sm_100f", 103, "sm_103f");
        check("sm_103f", 100, "refused");
        check("sm_100f", 120, "refused");
        check("sm_120f", 121, "sm_121f");
    }

    #[test]
    fn what_is_no_architecture() {
        for text in ["", "sm_", "sm_x", "sm_90z", "compute_90", "sm_99999999999"] {
            assert_eq!(Arch::parse(text), None, "{text}");
        }
    }
}
