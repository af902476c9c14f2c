//! A twin at home in a context: what is launched there, and the memory that outlives its launches.
//!
//! Made at the twin's first launch in a context, and complete before anybody finds it: the function, the buffer of the
//! tables, cleared, and the ties to the original's variables. A twin without ties is at home once a context; one with
//! ties once for each module of its kernel, for two modules of one image have variables of their own; and one whose
//! constants the program may write once for each stream that launches it ([`crate::tie`]). When a stream is destroyed its
//! home is another's as soon as all that was in the stream is over.
//!
//! A home ends with its context, its module or the process. It is taken out of its twin first, so that nobody finds it
//! any more; the collector then waits until no launch is in the middle of a call, and for those that run
//! ([`crate::behind`]), and fetches the tables ([`crate::harvest`]). Homes are never freed: a launch may still hold one.

use std::ffi::c_uint;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use crate::Opaque;
use crate::claim::Claim;
use crate::collect;
use crate::context::{Context, Current};
use crate::driver::{self, Driver, Relaxed};
use crate::kernel::{HandleKind, Kernel, Skip};
use crate::layout::{self, Part};
use crate::load::Owner;
use crate::pool::MAPS;
use crate::prepare::{self, Loaded};
use crate::process::{self, Process, lock};
use crate::quiet::{SignalsBlocked, guard};
use crate::stage::{Failure, check};
use crate::tie::{self, Copy};
use crate::time::{self, Deadline};
use crate::twin::Twin;

/// See the module.
pub(crate) struct Home {
    pub(crate) kernel: &'static Kernel,
    pub(crate) twin: &'static Twin,
    pub(crate) context: &'static Context,
    /// Whose variables it is tied to; `None` for a twin without ties.
    owner: Option<Owner>,
    /// What is launched.
    pub(crate) loaded: Loaded,
    /// The tables.
    pub(crate) tables: Tables,
    /// Made before each launch, as far as they are needed.
    pub(crate) copies: Vec<Copy>,
    /// Whose launches alone make them.
    claim: Claim,
    /// Launches that are between [`Home::enter`] and [`Home::leave`].
    users: AtomicU32,
    /// Nobody finds it any more.
    retiring: AtomicBool,
    /// Its tables are fetched or lost.
    ended: AtomicBool,
    /// Launches since the tables were cleared.
    pub(crate) launches: AtomicU64,
    /// Of these, whose segment is in the trace.
    pub(crate) fetched: AtomicU64,
    /// Whether what the tables held is in the trace.
    pub(crate) collected: AtomicBool,
}

// SAFETY: the driver's handles may be used from every thread.
unsafe impl Send for Home {}
// SAFETY: as above; the rest is plain data and atomics.
unsafe impl Sync for Home {}

/// The buffer of a twin's persistent maps.
#[derive(Clone, Copy, Default)]
pub(crate) struct Tables {
    /// Its device address.
    pub(crate) base: u64,
    /// 0: there is none.
    pub(crate) bytes: u64,
    /// One a map; only those of persistent ones mean something.
    pub(crate) parts: [Part; MAPS],
}

/// As many streams a twin has constants for, in one context and of one module.
const STREAMS: usize = 16;

/// A home that a launch has entered.
pub(crate) struct Entered {
    pub(crate) home: &'static Home,
    /// Whether constants are copied before it.
    pub(crate) copies: bool,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.home.leave();
    }
}

/// Where a twin is at home.
pub(crate) struct Homes([AtomicPtr<Home>; 64]);

/// All homes with tables or ties that have not ended.
static ALL: Mutex<Vec<&'static Home>> = Mutex::new(Vec::new());
/// Homes that are retiring and have not ended: work for the collector.
static RETIRING: AtomicU32 = AtomicU32::new(0);

impl Homes {
    /// Nowhere.
    pub(crate) fn new() -> Self {
        Homes([const { AtomicPtr::new(std::ptr::null_mut()) }; 64])
    }

    /// All of them.
    pub(crate) fn each(&self) -> impl Iterator<Item = &'static Home> {
        // SAFETY: null, or leaked by `make`.
        self.0.iter().filter_map(|home| unsafe { home.load(Ordering::Acquire).as_ref() })
    }

    fn of(&self, context: &Context, owner: Option<Owner>) -> impl Iterator<Item = &'static Home> {
        self.each().filter(move |home| std::ptr::eq(home.context, context) && home.owner == owner)
    }

    /// The one that launches in a stream of a context use, entered.
    #[inline]
    pub(crate) fn enter(&self, context: &Context, owner: Option<Owner>, stream: Opaque) -> Option<Entered> {
        self.of(context, owner).find_map(|home| {
            let mut entered = home.enter()?;
            // Seen once: a launch that the program has not ordered behind its question for an address needs no copy.
            entered.copies = home.copies.iter().any(Copy::is_needed);
            (!entered.copies || home.claim.is_for(stream)).then_some(entered)
        })
    }

    /// Whether another stream can have one.
    pub(crate) fn room(&self, context: &Context, owner: Option<Owner>) -> bool {
        self.of(context, owner).count() < STREAMS
    }

    /// Lets a stream have one that another has released.
    pub(crate) fn reuse(&self, context: &Context, owner: Option<Owner>, stream: Opaque, driver: &Driver) {
        let _ = self.of(context, owner).find(|home| home.claim.hand_over(stream, driver));
    }

    /// Takes a place for it; false if there is none.
    fn add(&self, home: &'static Home) -> bool {
        let new = std::ptr::from_ref(home).cast_mut();
        let null = std::ptr::null_mut();
        self.0
            .iter()
            .any(|place| place.compare_exchange(null, new, Ordering::AcqRel, Ordering::Relaxed).is_ok())
    }

    fn remove(&self, home: &Home) {
        let old = std::ptr::from_ref(home).cast_mut();
        for place in &self.0 {
            let _ = place.compare_exchange(old, std::ptr::null_mut(), Ordering::AcqRel, Ordering::Relaxed);
        }
    }
}

impl Home {
    /// Begins a launch, unless it is too late for that.
    #[inline]
    fn enter(&'static self) -> Option<Entered> {
        // The other side sets `retiring` and then looks at `users`: one of the two sees the other.
        self.users.fetch_add(1, Ordering::SeqCst);
        let entered = Entered { home: self, copies: false };
        (!self.retiring.load(Ordering::SeqCst)).then_some(entered)
    }

    /// A launch was made, or not.
    #[inline]
    fn leave(&self) {
        self.users.fetch_sub(1, Ordering::Release);
    }

    /// Whether no launch is in the middle of its calls.
    pub(crate) fn quiet(&self) -> bool {
        self.users.load(Ordering::SeqCst) == 0
    }

    /// Whether nobody finds it any more.
    pub(crate) fn is_retiring(&self) -> bool {
        self.retiring.load(Ordering::Acquire)
    }

    /// Whether it must be known at its end that its launches are over: it has tables, or reaches variables that go.
    #[inline]
    pub(crate) fn outlives_launches(&self) -> bool {
        self.tables.bytes != 0 || self.owner.is_some()
    }

    /// Whether the collector is to see to that yet.
    pub(crate) fn keeps(&self) -> bool {
        self.outlives_launches() && !self.ended.load(Ordering::Acquire)
    }

    /// From now on it is found by nobody.
    pub(crate) fn retire(&self) {
        self.twin.homes.remove(self);
        if !self.retiring.swap(true, Ordering::SeqCst) && self.keeps() {
            RETIRING.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// The collector is done with it.
    pub(crate) fn end(&self) {
        self.retire();
        if self.keeps() {
            RETIRING.fetch_sub(1, Ordering::SeqCst);
        }
        lock(&ALL).retain(|other| !std::ptr::eq(*other, self));
        self.ended.store(true, Ordering::Release);
    }
}

/// Whether homes wait for the collector.
pub(crate) fn any_retiring() -> bool {
    RETIRING.load(Ordering::SeqCst) != 0
}

/// The homes in a context that hold something.
pub(crate) fn keeping(context: &Context) -> Vec<&'static Home> {
    let all = lock(&ALL);
    all.iter().copied().filter(|home| std::ptr::eq(home.context, context) && home.keeps()).collect()
}

/// Makes a twin at home. The caller holds the lock that makes it the only one to do so.
pub(crate) fn make(
    kernel: &'static Kernel,
    twin: &'static Twin,
    context: &'static Context,
    owner: Option<Owner>,
    driver: &Driver,
    process: &'static Process,
) -> Result<&'static Home, String> {
    let _relaxed = Relaxed::new(driver);
    let _current = Current::new(driver, context.handle).ok_or("its context cannot be made current")?;
    let loaded = prepare::load(kernel, twin, driver)?;
    let equipped = equip(twin, context, owner, &loaded, driver);
    if equipped.is_err() {
        loaded.unload(driver);
    }
    let (copies, tables) = equipped?;
    let claim = if copies.is_empty() { Ok(Claim::none()) } else { Claim::new(driver) };
    let claim = claim.map_err(|failure| failure.to_string())?;
    if tables.bytes != 0 || owner.is_some() {
        collect::start(process);
    }
    let home: &'static Home = Box::leak(Box::new(Home {
        kernel,
        twin,
        context,
        owner,
        loaded,
        tables,
        copies,
        claim,
        users: AtomicU32::new(0),
        retiring: AtomicBool::new(false),
        ended: AtomicBool::new(false),
        launches: AtomicU64::new(0),
        fetched: AtomicU64::new(0),
        collected: AtomicBool::new(false),
    }));
    if tables.bytes != 0 {
        // So that a process that is killed leaves a word of it. An error will come again with the data.
        let _blocked = SignalsBlocked::new();
        if let Some(trace) = lock(&process.trace).as_mut() {
            let _ = twin.announce(kernel, trace);
        }
    }
    if home.outlives_launches() {
        lock(&ALL).push(home);
    }
    Ok(home)
}

/// Ties to the original's variables, and tables.
fn equip(
    twin: &Twin,
    context: &'static Context,
    owner: Option<Owner>,
    loaded: &Loaded,
    driver: &Driver,
) -> Result<(Vec<Copy>, Tables), String> {
    let copies = owner.map_or(Ok(Vec::new()), |owner| tie::tie(twin, owner, loaded, driver))?;
    let laid_out =
        layout::of_tables(twin, context.device.sms).ok_or("its tables are larger than any memory")?;
    let bytes = laid_out.bytes;
    let mut tables = Tables { base: 0, bytes, parts: laid_out.parts };
    if bytes != 0 || owner.is_some() {
        context.behind(driver).ok_or("its context cannot have a stream more")?;
    }
    if bytes != 0 {
        let said = |failure: Failure| format!("its tables could not be made: {failure}");
        tables.base = context.spare(bytes).map_or_else(|| allocate(driver, bytes), Ok).map_err(said)?;
        clear(driver, tables).map_err(said)?;
    }
    Ok((copies, tables))
}

/// Lets launches find it.
pub(crate) fn open(home: &'static Home) -> Result<(), Skip> {
    if home.twin.homes.add(home) { Ok(()) } else { Err(Skip::Homes) }
}

fn allocate(driver: &Driver, bytes: u64) -> Result<u64, Failure> {
    let mut base = 0;
    // SAFETY: writes one address.
    check("cuMemAlloc", unsafe { (driver.cuMemAlloc_v2)(&raw mut base, bytes as usize) })?;
    Ok(base)
}

/// Waits until it is done: no stream of the program's waits for one of ours.
fn clear(driver: &Driver, tables: Tables) -> Result<(), Failure> {
    const NON_BLOCKING: c_uint = 1;
    let mut stream = std::ptr::null_mut();
    // SAFETY: writes one handle; then our own memory, whose size is a multiple of 256, and our own stream.
    unsafe {
        check("cuStreamCreate", (driver.cuStreamCreate)(&raw mut stream, NON_BLOCKING))?;
        let words = (tables.bytes / 4) as usize;
        let set = check("cuMemsetD32Async", (driver.cuMemsetD32Async)(tables.base, 0, words, stream));
        let done = check("cuStreamSynchronize", (driver.cuStreamSynchronize)(stream));
        (driver.cuStreamDestroy_v2)(stream);
        set.and(done)
    }
}

/// A context is at its end.
pub(crate) fn retire_context(context: &Context, twins: impl Iterator<Item = &'static Twin>) {
    for home in twins.flat_map(|twin| twin.homes.each()) {
        if std::ptr::eq(home.context, context) {
            home.retire();
        }
    }
}

/// Before modules are unloaded: `owners` are they, `kernels` what was given out of them. Tables are fetched by the
/// collector when it comes to that. A twin that is tied to their variables must be through with them, so that is waited
/// for; what was loaded for it alone ends here.
pub(crate) fn retire_owners(owners: &[Owner], kernels: &[&'static Kernel]) {
    let Some((process, driver)) = process::get().zip(driver::get()) else { return };
    let mut tied = Vec::new();
    for home in kernels.iter().flat_map(|kernel| kernel.twins.each()).flat_map(|twin| twin.homes.each()) {
        match home.owner {
            Some(owner) if owners.contains(&owner) => {
                home.retire();
                tied.push(home);
            }
            None if home.keeps() => home.retire(),
            _ => {}
        }
    }
    if any_retiring() {
        collect::nudge();
    }
    let deadline = Deadline::after_ms(process.settings.exit_ms.max(100));
    let _relaxed = (!tied.is_empty()).then(|| Relaxed::new(driver));
    for home in tied {
        while !home.quiet() || (home.keeps() && collect::running()) {
            if deadline.passed() {
                crate::notes::say("a module was unloaded before its last launches were collected".into());
                return;
            }
            collect::nudge();
            time::sleep(std::time::Duration::from_micros(50));
        }
        home.end();
        guard(|| {
            if let Some(_current) = Current::new(driver, home.context.handle) {
                home.loaded.unload(driver);
            }
        });
    }
}

/// Before a stream is destroyed, which is not being captured.
pub(crate) fn release_stream(stream: Opaque, driver: &Driver) {
    for home in lock(&ALL).iter().filter(|home| !home.copies.is_empty()) {
        home.claim.release(stream, driver);
    }
}

/// What a function's handle is of matters to twins with ties alone.
pub(crate) fn owner_of(twin: &Twin, handle: Opaque, kind: HandleKind) -> Option<Owner> {
    if twin.is_tied() { crate::load::owner(handle, kind) } else { None }
}
