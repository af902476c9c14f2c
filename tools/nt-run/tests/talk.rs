//! What the parent answers to hooks, and to those who only claim to be one. The hook's part is played by this very
//! test, which nt-run starts again as its command.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first thing that is wrong")]

mod common;

use common::{Done, Place, done, testdata};
use nt_wire::message::{Body, Bye, Head, Hello, Image, Kernels, Kind, Need, Refused, Settings, Twin};
use nt_wire::{PROTOCOL, Reader};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use std::fs::File;
use std::io::{IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

/// The variable that tells this test that it is the command.
const PART: &str = "NT_TEST_PART";

struct Hook(UnixStream);

impl Hook {
    fn connect() -> Self {
        let folder = std::env::var_os("NT_RUN").unwrap();
        Hook(UnixStream::connect(std::path::Path::new(&folder).join("sock")).unwrap())
    }

    fn hello(&self) -> Settings {
        let exe = b"/usr/bin/hook".to_vec();
        self.send(&Hello { protocol: PROTOCOL, pid: std::process::id(), start: 1, exe }, None);
        self.receive().0
    }

    fn send(&self, body: &impl Body, file: Option<&File>) {
        let bytes = body.message(7);
        match file {
            None => (&self.0).write_all(&bytes).unwrap(),
            Some(file) => {
                let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
                let mut beside = SendAncillaryBuffer::new(&mut space);
                let descriptors = [file.as_fd()];
                assert!(beside.push(SendAncillaryMessage::ScmRights(&descriptors)));
                let sent =
                    rustix::net::sendmsg(&self.0, &[IoSlice::new(&bytes)], &mut beside, SendFlags::empty())
                        .unwrap();
                assert_eq!(sent, bytes.len());
            }
        }
    }

    fn answer(&self) -> (Head, Vec<u8>, Option<File>) {
        let mut head = [0; Head::SIZE];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut beside = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut head)];
        let got = rustix::net::recvmsg(&self.0, &mut parts, &mut beside, RecvFlags::empty()).unwrap();
        let mut file = None;
        for message in beside.drain() {
            if let RecvAncillaryMessage::ScmRights(mut rights) = message {
                file = rights.next().map(File::from);
            }
        }
        (&self.0).read_exact(&mut head[got.bytes..]).unwrap();
        let head = Head::decode(&head).unwrap();
        assert_eq!(head.serial, 7);
        let mut body = vec![0; head.len as usize];
        (&self.0).read_exact(&mut body).unwrap();
        (head, body, file)
    }

    fn receive<B: Body>(&self) -> (B, Option<File>) {
        let (head, body, file) = self.answer();
        assert_eq!(head.kind, B::KIND);
        (B::decode(&mut Reader::new(&body)).unwrap(), file)
    }

    fn image(&self, bytes: &[u8]) -> Kernels {
        let mut file =
            File::from(rustix::fs::memfd_create("image", rustix::fs::MemfdFlags::CLOEXEC).unwrap());
        file.write_all(bytes).unwrap();
        self.send(&Image { size: bytes.len() as u64, options: String::new() }, Some(&file));
        self.receive().0
    }

    fn need(&self, image: u32, kernel: &str) -> Result<(Twin, Vec<u8>), String> {
        self.send(&Need { image, arch: 90, kernel: kernel.to_owned(), holds: 0 }, None);
        let (head, body, file) = self.answer();
        match head.kind {
            Kind::Twin => {
                use std::os::unix::fs::FileExt;
                let twin = Twin::decode(&mut Reader::new(&body)).unwrap();
                let mut module = vec![0; usize::try_from(twin.size).unwrap()];
                file.unwrap().read_exact_at(&mut module, 0).unwrap();
                Ok((twin, module))
            }
            Kind::Refused => Err(Refused::decode(&mut Reader::new(&body)).unwrap().reason),
            other => panic!("{other:?} in answer to a need"),
        }
    }

    fn bye(self, launches: u64) {
        self.send(
            &Bye { launches, probed: 0, collected: 0, notes: vec!["a note of the hook".to_owned()] },
            None,
        );
    }
}

/// Runs `part` of this test as the command of nt-run.
fn with_hook(part: &str, options: &[&str]) -> (Place, Done) {
    let place = Place::new();
    let done = run_part(&place, part, options);
    assert_eq!(done.code, 0, "{}\n{}", done.stdout, done.stderr);
    (place, done)
}

fn run_part(place: &Place, part: &str, options: &[&str]) -> Done {
    let mut command = place.nt_run();
    // No assembler but the one that a test names.
    command.env(PART, part).env("PATH", "/usr/bin:/bin").env_remove("CUDA_HOME").env_remove("CUDA_PATH");
    command.args(options).arg(std::env::current_exe().unwrap()).args([
        "--exact",
        "the_hooks_part",
        "--nocapture",
    ]);
    done(command.output().unwrap())
}

/// The test that is not one: the command of all the others.
#[test]
fn the_hooks_part() {
    let Ok(part) = std::env::var(PART) else { return };
    let kernels = std::fs::read(testdata("nvcc/kernels.sm_90.ptx")).unwrap();
    match part.as_str() {
        "usual" => {
            let hook = Hook::connect();
            let settings = hook.hello();
            assert_eq!(
                settings,
                Settings {
                    protocol: PROTOCOL,
                    wait_ms: 5,
                    exit_ms: 9,
                    pool_bytes: 64 << 20,
                    launch_bytes: 0
                }
            );
            let found = hook.image(&kernels);
            assert_eq!(found.selected, ["vector_add"]);
            let (twin, module) = hook.need(found.image, "vector_add").unwrap();
            assert_eq!(twin.params.len(), 4);
            let text = module.strip_suffix(b"\0").expect("without ptxas the twin is PTX");
            assert!(String::from_utf8(text.to_vec()).unwrap().contains("/*nt:"));
            // The same again, from another process as it were.
            let other = Hook::connect();
            other.hello();
            let again = other.image(&kernels);
            assert_eq!(again, found);
            assert_eq!(other.need(again.image, "vector_add").unwrap(), (twin, module));
            other.bye(1);
            hook.bye(2);
        }
        "refusals" => {
            let hook = Hook::connect();
            hook.hello();
            let reason = |image: &[u8]| {
                let found = hook.image(image);
                assert!(found.selected.is_empty());
                found.reason
            };
            assert!(reason(b"\x7fELF\x02").contains("no PTX"));
            assert!(reason(b"").contains("no PTX"));
            let broken = String::from_utf8(kernels.clone()).unwrap().replacen("ret;", "ret", 1);
            let found = hook.image(broken.as_bytes());
            assert!(hook.need(found.image, "vector_add").unwrap_err().starts_with("line "));
            let found = hook.image(&kernels);
            assert!(hook.need(found.image, "no_such_kernel").unwrap_err().contains("not selected"));
            assert!(hook.need(999, "vector_add").is_err());
            hook.bye(0);
        }
        "rubbish" => {
            // Each of these ends its own talk and nobody else's.
            let mut descriptor = Hook::connect();
            descriptor.hello();
            descriptor.send(&Image { size: 1 << 40, options: String::new() }, None);
            assert_eq!(descriptor.0.read(&mut [0]).unwrap_or(0), 0);
            let mut text = Hook::connect();
            text.0.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
            assert_eq!(text.0.read(&mut [0]).unwrap_or(0), 0);
            drop(Hook::connect());
            let fine = Hook::connect();
            fine.hello();
            assert_eq!(fine.image(&kernels).selected.len(), 11);
            fine.bye(0);
        }
        "killed" => {
            let hook = Hook::connect();
            hook.hello();
            hook.image(&kernels);
        }
        "other version" => {
            let hook = Hook::connect();
            hook.send(&Hello { protocol: PROTOCOL + 1, ..Hello::default() }, None);
            assert_eq!(hook.receive::<Settings>().0.protocol, PROTOCOL);
        }
        other => panic!("no part {other}"),
    }
}

#[test]
fn images_are_inspected_and_kernels_prepared() {
    let mut options =
        vec!["-k", "=vector_add", "--wait-ms", "5", "--exit-ms", "9", "--pool", "64M", "--keep"];
    options.extend(["-k", "=vector_ad"]);
    let (place, done) = with_hook("usual", &options);
    assert!(
        done.stderr.contains("no kernel matches `=vector_ad`; the nearest: vector_add"),
        "{}",
        done.stderr
    );
    assert!(done.stderr.contains("nothing was probed: no kernel was launched"), "{}", done.stderr);
    assert!(done.stderr.contains("note: a note of the hook"), "{}", done.stderr);
    assert_eq!(done.stderr.matches("a note of the hook").count(), 1);
    let kept: Vec<_> =
        std::fs::read_dir(place.path("trace.ntt/kept")).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(kept.len(), 1);
    for name in ["original.ptx", "woven.ptx", "manifest.ntm"] {
        assert!(kept[0].join(name).exists(), "{name}");
    }
}

#[test]
fn refusals_have_reasons() {
    let (_, done) = with_hook("refusals", &[]);
    assert!(done.stderr.contains("nothing was probed"), "{}", done.stderr);
}

#[test]
fn nobody_is_harmed_by_rubbish() {
    let (_, done) = with_hook("rubbish", &[]);
    assert!(done.stderr.contains("a hook said something odd"), "{}", done.stderr);
}

#[test]
fn a_process_that_dies_is_noted() {
    let (_, done) = with_hook("killed", &[]);
    assert!(done.stderr.contains("1 process ended without a word (killed?)"), "{}", done.stderr);
}

#[test]
fn a_hook_of_another_version_is_noted() {
    let (_, done) = with_hook("other version", &[]);
    assert!(done.stderr.contains("is of another version"), "{}", done.stderr);
}

#[test]
fn no_kernel_matches() {
    let place = Place::new();
    let done = run_part(&place, "killed", &["-k", "=vector_ad"]);
    assert!(
        done.stderr.contains("nothing was probed: no kernel matches `=vector_ad`; the nearest: vector_add"),
        "{}",
        done.stderr
    );
}
