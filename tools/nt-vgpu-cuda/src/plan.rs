//! What is to go wrong, from `NT_VGPU_FAULT`: words separated by commas.
//!
//! | word | meaning |
//! |---|---|
//! | `load=N` | the Nth load of a module or library (from 1) answers 218 |
//! | `twin-launch=CODE` | launches of kernels whose last parameter is named `…ctx` answer CODE |
//! | `twin-blocks=N` | N blocks of such kernels are resident a multiprocessor |
//! | `delay=MS` | every kernel takes so many milliseconds |
//! | `uneven` | and every third one eight times as long |
//! | `no-libraries` | `cuLibrary…` and `cuKernel…` answer 801 |
//! | `no-write-value` | `cuStreamWriteValue64` answers 801 |
//! | `slow-copy` | copies between device addresses in a stream take 1 ms from their reading to their writing |
//! | `no-memory=BYTES` | allocations of more than so many bytes answer 2 |
//! | `copy=CODE` | asynchronous copies to the host answer CODE |
//! | `register=CODE` | registering host memory answers CODE |
//! | `idle` | launches answer 0 and do nothing at all, not even look: for measuring what stands before them |
//! | `second=ARCH` | there is a second device, of compute capability ARCH: 80 is 8.0 |
//! | `calls` | every call is logged by its name |
//! | `add` | kernels with a `…ctx` parameter add to the cells that it describes, see [`crate::effect`] |
//! | `look` | they log what the constants of their module hold when they run |
//! | `scribble` | kernels with a `…ctx` parameter write to the map that it describes, see [`crate::effect`] |
//! | `events=N` | they save events into the stream that it describes, likewise |

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::Code;

/// The plan of this process.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    load: Option<u64>,
    /// See `twin-launch`.
    pub(crate) twin_launch: Option<Code>,
    /// See `twin-blocks`.
    pub(crate) twin_blocks: Option<i32>,
    delay: Option<Duration>,
    uneven: bool,
    /// See `no-libraries`.
    pub(crate) no_libraries: bool,
    /// See `no-write-value`.
    pub(crate) no_write_value: bool,
    /// See `no-memory`.
    pub(crate) no_memory: Option<u64>,
    /// See `copy`.
    pub(crate) copy: Option<Code>,
    /// See `slow-copy`.
    pub(crate) slow_copy: bool,
    /// See `register`.
    pub(crate) register: Option<Code>,
    /// See `second`.
    pub(crate) second: Option<i32>,
    /// See `idle`.
    pub(crate) idle: bool,
    /// See `scribble`.
    pub(crate) scribble: bool,
    /// See `add`.
    pub(crate) add: bool,
    /// See `events`.
    pub(crate) events: Option<u32>,
    /// See `look`.
    pub(crate) look: bool,
    /// See `calls`.
    pub(crate) calls: bool,
}

impl Plan {
    /// Reads it. Words that are not known are ignored, so that one setting serves several versions.
    fn parse(text: &str) -> Plan {
        let mut plan = Plan::default();
        for word in text.split(',') {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            let number = value.parse::<u64>().ok();
            let code = value.parse::<Code>().ok();
            match name {
                "load" => plan.load = number,
                "twin-launch" => plan.twin_launch = code,
                "twin-blocks" => plan.twin_blocks = code,
                "delay" => plan.delay = number.map(Duration::from_millis),
                "uneven" => plan.uneven = true,
                "no-libraries" => plan.no_libraries = true,
                "no-write-value" => plan.no_write_value = true,
                "no-memory" => plan.no_memory = number,
                "copy" => plan.copy = code,
                "register" => plan.register = code,
                "slow-copy" => plan.slow_copy = true,
                "second" => plan.second = code,
                "idle" => plan.idle = true,
                "scribble" => plan.scribble = true,
                "add" => plan.add = true,
                "events" => plan.events = value.parse().ok(),
                "look" => plan.look = true,
                "calls" => plan.calls = true,
                _ => {}
            }
        }
        plan
    }

    /// Counts a launch; how long it takes.
    pub(crate) fn delay(&self) -> Duration {
        static LAUNCHES: AtomicU64 = AtomicU64::new(0);
        let this = LAUNCHES.fetch_add(1, Ordering::Relaxed);
        self.delay.unwrap_or_default() * if self.uneven && this.is_multiple_of(3) { 8 } else { 1 }
    }

    /// Counts a load; whether it is the one that fails.
    pub(crate) fn fails_load(&self) -> bool {
        static LOADS: AtomicU64 = AtomicU64::new(0);
        let this = LOADS.fetch_add(1, Ordering::Relaxed) + 1;
        self.load == Some(this)
    }
}

/// The plan of this process.
pub(crate) fn plan() -> &'static Plan {
    static PLAN: OnceLock<Plan> = OnceLock::new();
    PLAN.get_or_init(|| Plan::parse(&std::env::var("NT_VGPU_FAULT").unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read() {
        let plan = Plan::parse("load=2,twin-launch=701,delay=30,scribble,what=ever");
        assert_eq!(plan.load, Some(2));
        assert_eq!(plan.twin_launch, Some(701));
        assert_eq!(plan.delay, Some(Duration::from_millis(30)));
        assert!(plan.scribble && !plan.no_libraries);
    }
}
