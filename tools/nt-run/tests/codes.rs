//! The exit status is the command's, whatever was traced; nt-run's own failures have codes of their own.

#![allow(clippy::unwrap_used, reason = "a test stops at the first thing that is wrong")]

mod common;

use common::{Place, done};
use rustix::process::{Pid, Signal};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn check(words: &[&str], code: i32, said: &str) {
    let done = Place::new().run(words);
    assert!(done.stderr.contains(said), "{words:?} said {}", done.stderr);
    assert_eq!(done.code, code, "{words:?}: {}", done.stderr);
}

#[test]
fn the_commands_own_status_comes_back() {
    let nothing = "nothing was probed: no call of the CUDA driver was seen in";
    check(&["true"], 0, nothing);
    check(&["sh", "-c", "exit 3"], 3, nothing);
    check(&["--", "sh", "-c", "exit 255"], 255, nothing);
    check(&["sh", "-c", "kill -9 $$"], 137, nothing);
    check(&["sh", "-c", "kill -SEGV $$"], 139, nothing);
}

#[test]
fn a_command_that_cannot_start() {
    check(&["no-such-command"], 127, "no-such-command: command not found");
    check(&["/no/such/file"], 127, "/no/such/file: command not found");
    check(&["/"], 126, "/: cannot be executed");
    let place = Place::new();
    place.write("data", "text");
    assert_eq!(place.run(&["./data"]).code, 126);
    place.script("wrong", "#!/no/such/interpreter\n");
    let done = place.run(&["./wrong"]);
    assert_eq!(done.code, 127, "{}", done.stderr);
}

#[test]
fn failures_of_its_own() {
    let no_probe = done(Command::new(env!("CARGO_BIN_EXE_nt-run")).arg("true").output().unwrap());
    assert_eq!(no_probe.code, 125);
    assert!(no_probe.stderr.contains("no probe given: use `-p PROBE` or `-e TEXT`"), "{}", no_probe.stderr);
    check(&[], 125, "Usage:");
    check(&["--no-such-option", "true"], 125, "--no-such-option");
    check(&["--ptxas", "/bin/true", "true"], 125, "it does not answer `--version` as ptxas does");
    check(&["-o", "/proc/nowhere", "true"], 125, "failed to make /proc/nowhere");
    check(&["--arg", "x=1", "true"], 125, "has no `config` of that name");
    for (hook, said) in
        [("/no/such/hook.so", "failed to find the hook"), ("/etc/passwd", "is no shared library")]
    {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nt-run"));
        let done = done(command.args(["-p", common::PROBE, "--hook", hook, "true"]).output().unwrap());
        assert_eq!(done.code, 125);
        assert!(done.stderr.contains(said), "{}", done.stderr);
    }
}

#[test]
fn a_probe_that_is_refused_starts_nothing() {
    let place = Place::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_nt-run"));
    command.current_dir(place.path(".")).args(["-e", "kernel:entry { frobnicate(); }", "touch", "touched"]);
    let done = done(command.output().unwrap());
    assert_eq!(done.code, 125);
    assert!(done.stderr.starts_with("<-e>:1:"), "{}", done.stderr);
    assert!(!place.path("touched").exists() && !place.path("trace.ntt").exists());
}

#[test]
fn the_commands_streams_are_its_own() {
    let place = Place::new();
    let done = place.run(&["sh", "-c", "echo out; echo err >&2"]);
    assert_eq!(done.stdout, "out\n");
    assert!(done.stderr.starts_with("err\nnt-run: nothing was probed"), "{}", done.stderr);
    assert_eq!(place.run(&["-q", "true"]).stderr, "");
}

#[test]
fn the_environment_leads_to_the_run_folder() {
    let place = Place::new();
    let mut command = place.nt_run();
    command.env("LD_PRELOAD", "libother.so").args([
        "sh",
        "-c",
        "echo $NT_RUN; echo $LD_PRELOAD; ls -a $NT_RUN",
    ]);
    let done = done(command.output().unwrap());
    let lines: Vec<&str> = done.stdout.lines().collect();
    assert_eq!(lines[0], place.path("trace.ntt").canonicalize().unwrap().to_str().unwrap());
    assert!(lines[1].ends_with("libm.so.6:libother.so"), "{}", lines[1]);
    assert!(lines.contains(&"sock"));
    // The socket is gone afterwards, and the run is recorded.
    let mut left: Vec<_> = std::fs::read_dir(place.path("trace.ntt"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    left.sort();
    assert_eq!(left, [".nt-run", "log", "run.ntt"]);
}

#[test]
fn a_run_folder_is_replaced_and_nothing_else() {
    let place = Place::new();
    assert_eq!(place.run(&["true"]).code, 0);
    assert_eq!(place.run(&["true"]).code, 0);
    place.write("trace.ntt/thesis.tex", "");
    let done = place.run(&["true"]);
    assert_eq!(done.code, 125);
    assert!(done.stderr.contains("holds `thesis.tex`"), "{}", done.stderr);
    assert!(place.path("trace.ntt/run.ntt").exists());
}

#[test]
fn a_dry_run_starts_and_writes_nothing() {
    let place = Place::new();
    let done = place.run(&["--dry-run", "-k", "=gemm", "touch", "touched"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stdout.starts_with("probe\tblock_sched\nkernels\t=gemm\ncommand\t"), "{}", done.stdout);
    assert!(done.stdout.ends_with("kernels in it\tnone: no PTX: no device code in it\n"), "{}", done.stdout);
    assert!(!place.path("touched").exists() && !place.path("trace.ntt").exists());
}

/// The file need not be a program to be looked into; it holds PTX for sm_80 and sm_90a.
#[test]
fn a_dry_run_says_what_would_become_of_kernels() {
    let place = Place::new();
    let fatbin = std::fs::read(common::testdata("../fatbin/tiny.zstd.fatbin")).unwrap();
    std::fs::write(place.script("app", ""), fatbin).unwrap();
    let kernels = |options: &[&str]| {
        let done = place.run(&[&["--dry-run"], options, &["./app"]].concat());
        assert_eq!(done.code, 0, "{}", done.stderr);
        let mut lines: Vec<String> =
            done.stdout.lines().filter(|line| line.starts_with("kernel\t")).map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let sites = "probed for sm_90a: 2 sites";
    assert_eq!(kernels(&[]), [format!("kernel\ttinier()\t{sites}"), format!("kernel\ttiny\t{sites}")]);
    let chosen = kernels(&["-k", "=tiny"]);
    assert_eq!(chosen, ["kernel\ttinier()\tnot selected", &format!("kernel\ttiny\t{sites}")]);
}

/// A table of what could be probed, without a probe, and nothing is started.
#[test]
fn a_list_says_what_could_be_probed() {
    let place = Place::new();
    let list = |options: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nt-run"));
        done(command.current_dir(place.path(".")).arg("-l").args(options).output().unwrap())
    };
    let program = |file: &str| {
        std::fs::write(place.script("app", ""), std::fs::read(common::testdata(file)).unwrap()).unwrap();
    };
    program("../fatbin/tiny.zstd.fatbin");
    let done = list(&["./app"]);
    assert_eq!((done.code, done.stderr.as_str()), (0, ""));
    let points = |kernel: &str| -> Vec<String> {
        let rows = done.stdout.lines().map(|line| line.split('\t').collect::<Vec<_>>());
        rows.filter(|row| row[0] == kernel).map(|row| format!("{} {}", row[1], row[2])).collect()
    };
    assert!(done.stdout.starts_with("kernel\ttracepoint\tsites\tplaces\tname\n"), "{}", done.stdout);
    assert_eq!(points("tiny")[..2], ["kernel:entry 1", "kernel:exit 1"]);
    assert_eq!(list(&["-k", "=tiny", "./app"]).stdout.lines().count(), 1 + points("tiny").len());
    let none = list(&["-k", "=tinny", "./app"]);
    assert_eq!((none.code, none.stdout.as_str()), (4, ""));
    assert_eq!(none.stderr, "nt-run: ./app: no kernel matched: the nearest are `tiny`\n");

    // It need not be a program.
    let text = common::testdata("nvcc/kernels.sm_90.ptx");
    let text = list(&["-k", "=transpose", text.to_str().unwrap()]);
    assert!(text.code == 0 && text.stdout.contains("\ntranspose\tinst:load.global\t"), "{}", text.stdout);
    let nothing = list(&["/bin/true"]);
    assert_eq!(nothing.code, 4);
    assert!(nothing.stderr.contains("no PTX: no device code in it"), "{}", nothing.stderr);
    assert_eq!(list(&["no-such-command"]).code, 127);
}

/// Signals that are sent to nt-run alone reach the command, and a terminal's are only survived.
#[test]
fn signals_are_handed_on() {
    for (signal, code) in [(Signal::TERM, 42), (Signal::INT, 43), (Signal::USR1, 44)] {
        let place = Place::new();
        let script = "trap 'exit 42' TERM; trap 'exit 43' INT; trap 'exit 44' USR1; echo ready >ready; \
                      while :; do sleep 0.05; done";
        let mut command = place.nt_run();
        // A group of its own, as a shell gives a job: what is sent to nt-run is sent to nobody else.
        command.args(["sh", "-c", script]).process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
        let running = command.spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(20);
        while !place.path("ready").exists() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        let pid = Pid::from_raw(i32::try_from(running.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
        let done = done(running.wait_with_output().unwrap());
        assert_eq!(done.code, code, "{signal:?}: {}", done.stderr);
    }
}

/// A program in the background keeps nt-run no longer than the command itself.
#[test]
fn what_outlives_the_command_is_left_alone() {
    let place = Place::new();
    let started = Instant::now();
    let mut command = place.nt_run();
    command.args(["sh", "-c", "sleep 30 >/dev/null 2>&1 &"]);
    assert_eq!(done(command.output().unwrap()).code, 0);
    assert!(started.elapsed() < Duration::from_secs(15));
}
