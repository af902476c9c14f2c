//! `run.ntt`: the parent's own trace file, with what belongs to no process' own.
//!
//! Its frames are a start (the command, the version), notes (the summary's first line, and all that was in the way), an
//! end. Launches are counted by the hooks, each in its file, and not again here.

use nt_trace::ntt::FileWriter;
use nt_wire::frame::{End, Note, Start};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Its name in the run folder.
pub(crate) const FILE: &str = "run.ntt";

/// Who runs, for the start frame; made before the command starts.
pub(crate) fn start(command: &[String]) -> Start {
    let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let monotonic = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let nanoseconds = i128::from(monotonic.tv_sec) * 1_000_000_000 + i128::from(monotonic.tv_nsec);
    Start {
        protocol: nt_wire::PROTOCOL,
        pid: std::process::id(),
        start: started(&text("/proc/self/stat")),
        wall_ns: u64::try_from(since.as_nanos()).unwrap_or(0),
        monotonic_ns: u64::try_from(nanoseconds).unwrap_or(0),
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        boot: text("/proc/sys/kernel/random/boot_id"),
        exe: std::env::current_exe().map(|path| path.display().to_string()).unwrap_or_default(),
        command: command.to_vec(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// Field 22 of a process' `stat`. The second field is a name in parentheses, which may hold anything.
fn started(stat: &str) -> u64 {
    stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(19)?.parse().ok()).unwrap_or(0)
}

/// Writes the file.
///
/// # Errors
/// It cannot be written.
pub(crate) fn write(folder: &Path, start: &Start, notes: &[String]) -> std::io::Result<()> {
    let mut writer = FileWriter::new();
    let mut bytes = writer.frame(start);
    for note in notes {
        bytes.extend(writer.frame(&Note { text: note.clone() }));
    }
    bytes.extend(writer.frame(&End::default()));
    std::fs::write(folder.join(FILE), bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nt_trace::ntt::{Event, Trace};

    #[test]
    fn what_was_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let start = start(&["app".to_owned(), "-x".to_owned()]);
        assert!(start.start > 0 && start.monotonic_ns > 0 && !start.boot.is_empty());
        write(folder.path(), &start, &["nothing was probed".to_owned()]).unwrap();
        let bytes = std::fs::read(folder.path().join(FILE)).unwrap();
        let events: Vec<Event<'_>> = Trace::new(&bytes).collect();
        let note = Event::Note(Note { text: "nothing was probed".to_owned() });
        assert_eq!(events, [Event::Start(start), note, Event::End(End::default())]);
    }

    #[test]
    fn a_name_with_parentheses() {
        let fields: Vec<String> = (3..=52).map(|n| n.to_string()).collect();
        assert_eq!(started(&format!("12 (a) b) {}", fields.join(" "))), 22);
        assert_eq!(started(""), 0);
    }
}
