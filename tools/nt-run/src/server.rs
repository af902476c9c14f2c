//! Serves the hooks of all processes of a run, over the socket of the run folder: a thread listens, and each process
//! has a thread of its own, which answers its questions one by one.

use crate::folder::RunFolder;
use crate::ledger::Ledger;
use crate::log::Log;
use crate::session::Session;
use anyhow::Context;
use nt_engine::Engine;
use nt_wire::message::Settings;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What all sessions share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Prepares kernels.
    pub(crate) engine: Engine,
    /// What hooks are told.
    pub(crate) settings: Settings,
    /// What is learned.
    pub(crate) ledger: Ledger,
    /// Where events are written.
    pub(crate) log: Log,
    /// The run folder.
    pub(crate) folder: PathBuf,
    /// `--keep`
    pub(crate) keep: bool,
    /// `--vgpu`: twins go as PTX, whatever an assembler made of them.
    pub(crate) as_ptx: bool,
    /// How many sessions there are, and a bell for each that ends.
    open: Mutex<usize>,
    closed: Condvar,
    ending: AtomicBool,
}

/// A server that listens.
#[derive(Debug)]
pub(crate) struct Server {
    shared: Arc<Shared>,
    socket: PathBuf,
    listener: Option<JoinHandle<()>>,
    /// Holds the socket itself, where the run folder can only hold a link to one.
    _elsewhere: Option<tempfile::TempDir>,
}

impl Server {
    /// Begins to listen.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub(crate) fn start(
        folder: &RunFolder,
        engine: Engine,
        settings: Settings,
        keep: bool,
        as_ptx: bool,
    ) -> anyhow::Result<Server> {
        let socket = folder.socket();
        let (listener, elsewhere) =
            bind(&socket).with_context(|| format!("failed to listen at {}", socket.display()))?;
        let shared = Arc::new(Shared {
            engine,
            settings,
            ledger: Ledger::default(),
            log: Log::new(&folder.path),
            folder: folder.path.clone(),
            keep,
            as_ptx,
            open: Mutex::new(0),
            closed: Condvar::new(),
            ending: AtomicBool::new(false),
        });
        let served = Arc::clone(&shared);
        let listener = std::thread::Builder::new()
            .name("listen".to_owned())
            .spawn(move || listen(&listener, &served))
            .context("failed to start a thread")?;
        Ok(Server { shared, socket, listener: Some(listener), _elsewhere: elsewhere })
    }

    /// What the sessions share.
    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Stops listening, and gives sessions that go on `grace` to end. How many still do.
    pub(crate) fn finish(&mut self, grace: Duration) -> usize {
        self.shared.ending.store(true, Ordering::SeqCst);
        // The listener sleeps in `accept`: a visit wakes it.
        if UnixStream::connect(&self.socket).is_ok()
            && let Some(listener) = self.listener.take()
        {
            let _ = listener.join();
        }
        let _ = std::fs::remove_file(&self.socket);
        let until = Instant::now() + grace;
        let mut open = self.shared.open.lock().unwrap_or_else(PoisonError::into_inner);
        while *open > 0 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            open = self.shared.closed.wait_timeout(open, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        *open
    }
}

/// A socket at `path`; on a file system that has none, a link to one in the folder for temporary files.
fn bind(path: &Path) -> std::io::Result<(UnixListener, Option<tempfile::TempDir>)> {
    let error = match UnixListener::bind(path) {
        Ok(listener) => return Ok((listener, None)),
        Err(error) => error,
    };
    let elsewhere = || -> std::io::Result<_> {
        let folder = tempfile::Builder::new().prefix("nt-sock-").tempdir_in("/tmp")?;
        let listener = UnixListener::bind(folder.path().join("sock"))?;
        std::os::unix::fs::symlink(folder.path().join("sock"), path)?;
        Ok((listener, Some(folder)))
    };
    elsewhere().map_err(|_| error)
}

fn listen(listener: &UnixListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.ending.load(Ordering::SeqCst) {
            return;
        }
        match stream {
            Ok(stream) => serve(stream, shared),
            Err(error) => {
                // Out of descriptors, most likely. The hook that waits finds out by its own time-out.
                shared.log.line(format_args!("accept failed: {error}"));
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

/// Starts a session of its own thread.
fn serve(stream: UnixStream, shared: &Arc<Shared>) {
    // Counted before the thread starts, so that a session that has just begun is waited for.
    *shared.open.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    let of_thread = Arc::clone(shared);
    let started = std::thread::Builder::new().name("session".to_owned()).spawn(move || {
        let shared = of_thread;
        if let Err(error) = Session::new(&shared, &stream).run() {
            shared.log.line(format_args!("a talk ended early: {error}"));
            shared.ledger.note(format!("a hook said something odd and was left alone: {error}"));
        }
        end(&shared);
    });
    if let Err(error) = started {
        shared.log.line(format_args!("no thread for a process: {error}"));
        end(shared);
    }
}

fn end(shared: &Shared) {
    *shared.open.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
    shared.closed.notify_all();
}

#[cfg(test)]
mod tests {
    use super::bind;
    use std::os::unix::net::UnixStream;

    #[test]
    fn where_no_socket_can_be_a_link_leads_to_one() {
        let place = tempfile::tempdir().unwrap();
        // A path that is too long for a socket's address stands for a file system that has none: both refuse to bind.
        let long = place.path().join("x".repeat(120));
        let (_listener, elsewhere) = bind(&long).unwrap();
        assert!(elsewhere.is_some());
        assert!(UnixStream::connect(std::fs::read_link(&long).unwrap()).is_ok());
        let (_listener, elsewhere) = bind(&place.path().join("sock")).unwrap();
        assert!(elsewhere.is_none());
        assert!(bind(&place.path().join("no/folder")).is_err());
    }
}
