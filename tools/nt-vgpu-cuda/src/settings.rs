//! How kernels are executed, from `NT_VGPU` and its companions: see the crate's table.

use std::sync::OnceLock;

/// Multiprocessors of a device that executes: few, so that each has several blocks one after the other.
const FEW: u32 = 8;
/// Those of the card that the device looks like without an executor.
const AS_SM_90: u32 = 132;
/// Instructions of one cluster after which a kernel is taken for one that hangs: some twenty minutes.
const MOST_STEPS: u64 = 1 << 34;

/// The settings of a process whose device executes kernels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Of the schedule; `None` for the plain one.
    pub(crate) seed: Option<u64>,
    /// Threads that blocks are spread over.
    pub(crate) threads: usize,
    /// Multiprocessors.
    pub(crate) sms: u32,
    /// Instructions that a cluster may take.
    pub(crate) steps: u64,
}

impl Settings {
    /// Reads them; `None` where kernels are not to be executed.
    fn read(variable: impl Fn(&str) -> Option<String>) -> Option<Settings> {
        variable("NT_VGPU").filter(|value| value == "1")?;
        let number = |name: &str| variable(name)?.trim().parse::<u64>().ok();
        let small = |name: &str| number(name).filter(|n| (1..=1024).contains(n)).map(|n| n as u32);
        let processors = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Some(Settings {
            seed: number("NT_VGPU_SEED"),
            threads: small("NT_VGPU_THREADS").map_or_else(processors, |n| n as usize),
            sms: small("NT_VGPU_SMS").unwrap_or(FEW),
            steps: number("NT_VGPU_STEPS").unwrap_or(MOST_STEPS),
        })
    }
}

/// Those of this process.
pub(crate) fn settings() -> Option<&'static Settings> {
    static SETTINGS: OnceLock<Option<Settings>> = OnceLock::new();
    SETTINGS.get_or_init(|| Settings::read(|name| std::env::var(name).ok())).as_ref()
}

/// Multiprocessors of the device.
pub(crate) fn multiprocessors() -> u32 {
    settings().map_or(AS_SM_90, |settings| settings.sms)
}

/// How fast `%clock` counts at most. Executing, it counts instructions, of which no processor interprets more.
pub(crate) fn clock_khz() -> u32 {
    if settings().is_some() { 100_000 } else { 1_980_000 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_decides() {
        let read = |given: &[(&str, &str)]| {
            let find = |name: &str| given.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
            Settings::read(find)
        };
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[("NT_VGPU", "0"), ("NT_VGPU_SEED", "3")]), None);
        let all = [
            ("NT_VGPU", "1"),
            ("NT_VGPU_SEED", "18446744073709551615"),
            ("NT_VGPU_THREADS", "3"),
            ("NT_VGPU_SMS", "5"),
            ("NT_VGPU_STEPS", "1000"),
        ];
        let expected = Settings { seed: Some(u64::MAX), threads: 3, sms: 5, steps: 1000 };
        assert_eq!(read(&all), Some(expected));
        let odd = read(&[("NT_VGPU", "1"), ("NT_VGPU_SMS", "0"), ("NT_VGPU_SEED", "x")]);
        assert_eq!(odd.map(|s| (s.seed, s.sms)), Some((None, FEW)));
    }
}
