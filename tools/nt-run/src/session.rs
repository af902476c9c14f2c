//! The talk with one process: it asks, we answer, in order.
//!
//! Nothing that happens here may harm it. A panic of ours becomes a refusal, a message of its that is wrong ends the
//! talk, and then its kernels run as they are.

use crate::guard::guard;
use crate::ledger::{Outcome, Process};
use crate::save;
use crate::server::Shared;
use crate::talk::{Message, memory_file, receive, send};
use nt_engine::{Conditions, Prepared, Refusal};
use nt_wire::PROTOCOL;
use nt_wire::message::{Body, Bye, Hello, Image, Kernels, Kind, Need, Refused, Settings};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// One process' talk.
#[derive(Debug)]
pub(crate) struct Session<'s> {
    shared: &'s Shared,
    stream: &'s UnixStream,
    /// Index of its entry in the ledger, once it said hello.
    process: Option<usize>,
    pid: u32,
}

impl<'s> Session<'s> {
    /// A talk over `stream`.
    pub(crate) fn new(shared: &'s Shared, stream: &'s UnixStream) -> Self {
        Session { shared, stream, process: None, pid: 0 }
    }

    /// Answers until the other side closes.
    ///
    /// # Errors
    /// The other side says what it may not, or died in the middle of a word.
    pub(crate) fn run(&mut self) -> std::io::Result<()> {
        while let Some(message) = receive(self.stream)? {
            let serial = message.head.serial;
            match message.head.kind {
                Kind::Hello => self.hello(&message.read()?, serial)?,
                Kind::Image => {
                    let shown = message.read::<Image>()?;
                    self.image(message, &shown, serial)?;
                }
                Kind::Need => self.need(&message.read()?, serial)?,
                Kind::Bye => self.bye(message.read()?),
                // What only we say.
                other => return Err(std::io::Error::other(format!("a {other:?} from a hook"))),
            }
        }
        Ok(())
    }

    fn answer(&self, body: &impl Body, serial: u32) -> std::io::Result<()> {
        send(self.stream, &body.message(serial), None)
    }

    fn hello(&mut self, hello: &Hello, serial: u32) -> std::io::Result<()> {
        let exe = String::from_utf8_lossy(&hello.exe).into_owned();
        self.shared.log.line(format_args!("hello from {} {exe}", hello.pid));
        if hello.protocol != PROTOCOL {
            self.shared.ledger.note(format!(
                "the hook in {exe} is of another version (protocol {} and not {PROTOCOL}): nothing in it was probed",
                hello.protocol
            ));
        }
        self.pid = hello.pid;
        {
            let mut entries = self.shared.ledger.open();
            self.process = Some(entries.processes.len());
            entries.processes.push(Process { pid: hello.pid, exe, bye: None });
        }
        self.answer(&Settings { protocol: PROTOCOL, ..self.shared.settings.clone() }, serial)
    }

    fn image(&mut self, message: Message, shown: &Image, serial: u32) -> std::io::Result<()> {
        let (size, options) = (shown.size, shown.options.as_str());
        let bytes = message.image(size)?;
        let found = match guard(|| self.shared.engine.inspect_with(&bytes, options)) {
            Ok(found) => found,
            Err(panic) => {
                let reason = save::panic(self.shared, &panic, &[("image", &bytes)]);
                nt_engine::Inspected { reason, ..Default::default() }
            }
        };
        self.shared.log.line(format_args!(
            "{} image of {size} bytes{}{options}: {} kernels, {} selected{}{}",
            self.pid,
            if options.is_empty() { "" } else { ", loaded with " },
            found.kernels.len(),
            found.selected.len(),
            if found.reason.is_empty() { "" } else { "; " },
            found.reason
        ));
        for fault in &found.faults {
            self.shared.ledger.note(format!("an image of {size} bytes is damaged: {fault}"));
        }
        {
            let mut entries = self.shared.ledger.open();
            entries.seen += 1;
            entries.selected.extend(found.selected.iter().cloned());
            entries.closed.extend(found.closed.iter().cloned());
            if !found.reason.is_empty() {
                *entries.images.entry(found.reason.clone()).or_default() += 1;
            }
        }
        let answer = Kernels { image: found.image, reason: found.reason, selected: found.selected };
        self.answer(&answer, serial)
    }

    fn need(&mut self, need: &Need, serial: u32) -> std::io::Result<()> {
        let Need { image, arch, kernel, holds } = need;
        let holds = Conditions::from_bits(*holds).unwrap_or(Conditions::NONE);
        let prepare = || self.shared.engine.prepare(*image, kernel, *arch, holds);
        let prepared = guard(prepare).unwrap_or_else(|panic| {
            let question = format!("kernel {kernel}, sm_{arch}, launches: {holds}\n");
            let bytes = self.shared.engine.bytes(*image);
            let files: [(&str, &[u8]); 2] = [("image", &bytes), ("question", question.as_bytes())];
            Err(Refusal { reason: save::panic(self.shared, &panic, &files), bug: None })
        });
        let key = (kernel.clone(), *arch, holds);
        match prepared {
            Ok(prepared) => {
                let prepared = if self.shared.as_ptx { as_ptx(prepared) } else { prepared };
                let known = self.enter(key, probed(&prepared));
                let cost = prepared.cost;
                self.shared.log.line(format_args!(
                    "{} {kernel} for sm_{arch} ({holds}): probed, {:.1} ms and {:.1} ms of assembler ({} runs)",
                    self.pid,
                    cost.ours.as_secs_f64() * 1e3,
                    cost.assembler.as_secs_f64() * 1e3,
                    cost.assembled
                ));
                prepared.notes.iter().for_each(|note| self.shared.ledger.note(note.clone()));
                if self.shared.keep && !known {
                    save::kept(self.shared, kernel, *arch, &prepared);
                }
                let file = memory_file("nt-twin", &prepared.image)?;
                send(self.stream, &prepared.twin().message(serial), Some(&file))
            }
            Err(refusal) => {
                self.shared.log.line(format_args!(
                    "{} {kernel} for sm_{arch} ({holds}): refused: {}",
                    self.pid, refusal.reason
                ));
                let mut reason = refusal.reason.clone();
                let refusal = Arc::new(refusal);
                let known = self.enter(key, Outcome::Refused(Arc::clone(&refusal)));
                if let (Some(bug), false) = (&refusal.bug, known) {
                    let files: Vec<(&str, &[u8])> =
                        bug.files.iter().map(|(name, text)| (*name, text.as_bytes())).collect();
                    if let Some(place) = save::bug(self.shared, &refusal.reason, &files) {
                        reason += &format!(" (saved in {place})");
                    }
                }
                self.answer(&Refused { reason }, serial)
            }
        }
    }

    /// Enters what became of a kernel. True if that was known before: another process asked first.
    fn enter(&self, key: (String, u32, Conditions), outcome: Outcome) -> bool {
        let mut entries = self.shared.ledger.open();
        let known = entries.kernels.get(&key) == Some(&outcome);
        if !known {
            entries.kernels.insert(key, outcome);
        }
        known
    }

    fn bye(&mut self, bye: Bye) {
        self.shared.log.line(format_args!(
            "bye from {}: {} launches, {} probed, {} collected",
            self.pid, bye.launches, bye.probed, bye.collected
        ));
        bye.notes.iter().for_each(|note| self.shared.ledger.note(note.clone()));
        let mut entries = self.shared.ledger.open();
        if let Some(process) = self.process.and_then(|index| entries.processes.get_mut(index)) {
            process.bye = Some(bye);
        }
    }
}

/// For a device that takes PTX alone: the text, whatever an assembler has made of it.
fn as_ptx(prepared: Arc<Prepared>) -> Arc<Prepared> {
    if !prepared.is_cubin {
        return prepared;
    }
    let image = [prepared.woven.as_bytes(), b"\0"].concat();
    Arc::new(Prepared { image, is_cubin: false, ..Prepared::clone(&prepared) })
}

fn probed(prepared: &Prepared) -> Outcome {
    let kernel = prepared.manifest.kernels.first();
    let resources = [kernel.and_then(|k| k.before), kernel.and_then(|k| k.after)];
    let assumes = kernel.map_or(Conditions::NONE, nt_trace::ntm::Kernel::conditions);
    Outcome::Probed { resources, cost: prepared.cost, assumes }
}
