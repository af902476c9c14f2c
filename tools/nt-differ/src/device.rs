//! A kernel's run on the software GPU, from memory made afresh to memory read back.
//!
//! Two runs of one job find every buffer at the same address, also where one of them has segments of maps: those are
//! allocated last. So memory can be compared to the bit even where it holds pointers.

use crate::probed::{Probed, Units};
use crate::random::Random;
use crate::sidecar::{self, Content, Shape, Sidecar};
use nt_ptx::ModuleInfo;
use nt_ptx::syntax::Module;
use nt_vgpu::{Accessed, Arena, Grid, Launch, Memory, Options, Program, Stats};
use nt_weave::Fill;
use nt_wire::message::Unit;

/// A PTX text, read and decoded.
#[derive(Debug)]
pub struct Text<'t> {
    /// The text.
    pub text: &'t str,
    /// Its statements.
    pub module: Module<'t>,
    /// Its names.
    pub info: ModuleInfo<'t>,
    /// Its code.
    pub program: Program,
}

impl<'t> Text<'t> {
    /// Reads a text.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn load(text: &'t str) -> Result<Self, String> {
        let (module, mut found) = nt_ptx::parse(text);
        let info = nt_ptx::resolve(&module, &mut found);
        if found.has_errors() {
            return Err(format!("{found:?}"));
        }
        let program = Program::load(&module, &info).map_err(|found| format!("{found:?}"))?;
        Ok(Text { text, module, info, program })
    }

    /// Does a kernel hold an instruction that the software GPU does not execute?
    pub fn is_missing(&self, kernel: &str) -> bool {
        let mut functions = self.module.functions.iter();
        let body = functions.find(|f| f.body.is_some() && self.module.at(f.name) == kernel);
        body.and_then(|function| function.body.as_ref()).is_some_and(|body| {
            self.program.missing().any(|(place, _)| body.statements.contains(&place.statement))
        })
    }
}

/// A kernel, and what it is launched with.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Its name.
    pub kernel: String,
    /// The shape of the launch.
    pub shape: Shape,
    /// Its arguments.
    pub args: Vec<Given>,
    /// Contents of variables.
    pub variables: Vec<(String, Vec<u8>)>,
}

/// An argument with its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Given {
    /// The address of a buffer with this content.
    Buffer(Vec<u8>),
    /// Bytes by value.
    Value(Vec<u8>),
    /// Members one after the other, aligned.
    Struct(Vec<Given>),
}

impl Job {
    /// A launch as a sidecar says, with buffers filled by chance.
    pub fn new(
        kernel: &str,
        sidecar: &Sidecar,
        known: &sidecar::Kernel,
        shape: Shape,
        random: &mut Random,
    ) -> Job {
        let args = known.args.iter().map(|arg| given(arg, random)).collect();
        let mut fill = |(name, content): &(String, Content)| (name.clone(), content.bytes(random));
        let variables = sidecar.variables.iter().map(&mut fill).collect();
        Job { kernel: kernel.to_owned(), shape, args, variables }
    }

    /// Blocks of the launch.
    pub fn blocks(&self) -> u64 {
        self.shape.grid.iter().map(|&n| u64::from(n)).product()
    }

    /// Threads of a block.
    pub fn threads(&self) -> u64 {
        self.shape.block.iter().map(|&n| u64::from(n)).product()
    }
}

fn given(arg: &sidecar::Argument, random: &mut Random) -> Given {
    match arg {
        sidecar::Argument::Buffer(content) => Given::Buffer(content.bytes(random)),
        sidecar::Argument::Value(bytes) => Given::Value(bytes.clone()),
        sidecar::Argument::Struct(members) => {
            Given::Struct(members.iter().map(|member| given(member, random)).collect())
        }
    }
}

/// What a run left.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ran {
    /// The memory of buffers and variables.
    pub memory: Vec<Held>,
    /// What was printed.
    pub printed: String,
    /// What was counted, by cluster; by block where there are no clusters.
    pub parts: Vec<Part>,
    /// The segments of the probe's maps, then of its tables.
    pub segments: Vec<Segment>,
    /// The bytes of its parameters.
    pub params: Vec<u8>,
}

/// Memory, before the run and after it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Held {
    /// What it is.
    pub what: String,
    /// Its bytes before.
    pub before: Vec<u8>,
    /// Its bytes now.
    pub now: Vec<u8>,
}

/// What a cluster did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Part {
    /// The SM that it ran on.
    pub sm: u32,
    /// Its counts.
    pub stats: Stats,
}

/// The memory of a map or table after a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Segment {
    /// How many units the launch has.
    pub units: u64,
    /// How many there is room for; of a stream, how many slots.
    pub capacity: u64,
    /// What was stored.
    pub bytes: Vec<u8>,
    /// Of a stream, how many chunks were asked for beyond the first of each unit.
    pub claims: u64,
    /// Of a stream, the words that count events without room.
    pub drops: Vec<u8>,
    /// Of an array with a capacity, the counts of its units.
    pub counts: Vec<u8>,
}

/// Where the parts of a segment lie.
struct Placed {
    base: u64,
    cursor: u64,
    drops: u64,
    counts: u64,
    segment: Segment,
}

impl Placed {
    fn new(arena: &mut Arena, units: u64, capacity: u64, of: Units) -> Placed {
        let base = arena.allocate((capacity * u64::from(of.stride)) as usize);
        let (cursor, drops) = match of.chunk {
            Some(_) => (arena.allocate(8), arena.allocate((4 * units) as usize)),
            None => (0, 0),
        };
        let counts = match of.room {
            Some(room) => arena.allocate((u64::from(room.count_bytes()) * units) as usize),
            None => 0,
        };
        Placed { base, cursor, drops, counts, segment: Segment { units, capacity, ..Segment::default() } }
    }

    fn read(self, arena: &Arena) -> Segment {
        let claims = arena.download(self.cursor).first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let (drops, counts) = (arena.download(self.drops), arena.download(self.counts));
        Segment { bytes: arena.download(self.base), claims, drops, counts, ..self.segment }
    }
}

/// What a launch is numbered where a probe asks.
pub const LAUNCH: u64 = 7;

/// Runs a job of a program; if it has probes in it, with a context filled as the hook fills it.
///
/// # Errors
/// The launch does not fit the kernel, or does not run to its end.
pub fn run(program: &Program, job: &Job, options: &Options, probed: Option<&Probed>) -> Result<Ran, String> {
    run_watched(program, job, options, probed, &mut |_, _| ())
}

/// The same, and `watch` is told of every access, with the bytes of the launch's parameters.
///
/// # Errors
/// The launch does not fit the kernel, or does not run to its end.
pub fn run_watched(
    program: &Program,
    job: &Job,
    options: &Options,
    probed: Option<&Probed>,
    watch: &mut dyn FnMut(&[u8], &Accessed<'_>),
) -> Result<Ran, String> {
    let name = &job.kernel;
    let kernel = program.kernel(name).ok_or_else(|| format!("no kernel `{name}`"))?;
    let mut arena = Arena::new();
    let [globals, constants] =
        [program.globals(), program.constants()].map(|segment| arena.allocate(segment.size as usize));
    program.initialise(&arena, globals, constants).map_err(|_| "no room for the variables".to_owned())?;
    for (name, bytes) in &job.variables {
        let find = |segment: &nt_vgpu::Segment, base: u64| {
            segment.variables.iter().find(|variable| variable.name == *name).map(|v| base + v.offset)
        };
        let at = find(program.globals(), globals).or_else(|| find(program.constants(), constants));
        if let Some(at) = at {
            arena.write(at, bytes).map_err(|_| format!("`{name}` is smaller than its content"))?;
        }
    }

    let mut params = vec![0; kernel.param_bytes as usize];
    let mut buffers = Vec::new();
    let mut put = |offset: u32, bytes: &[u8]| {
        let at = offset as usize;
        params.get_mut(at..at + bytes.len()).map(|place| place.copy_from_slice(bytes))
    };
    for (number, arg) in job.args.iter().enumerate() {
        let param = kernel.params.get(number).ok_or_else(|| format!("`{name}` has {number} parameters"))?;
        let bytes = place(arg, &mut arena, &mut buffers);
        if bytes.len() > param.size as usize {
            return Err(format!("`{name}`: {} bytes for a parameter of {}", bytes.len(), param.size));
        }
        put(param.offset, &bytes).ok_or("a parameter outside of its list")?;
    }
    if kernel.params.len() != job.args.len() + usize::from(probed.is_some()) {
        return Err(format!("`{name}` has {} parameters, given {}", kernel.params.len(), job.args.len()));
    }

    let mut segments = Vec::new();
    if let Some(probed) = probed {
        let context = kernel.params.last().ok_or("no context")?;
        let woven = probed.kernel(name).ok_or_else(|| format!("`{name}` has no probes"))?;
        for of in probed.units(woven) {
            let units =
                of.unit.count(job.shape.grid, job.shape.block, options.sms).ok_or("too many units")?;
            let capacity = match of.chunk {
                // Rounded up as a segment is. An access behind it is told by the arena.
                None => (units * of.room.map_or(1, |room| room.records().into())).next_multiple_of(16),
                Some(chunk) => probed.room.chunks(units) * u64::from(chunk),
            };
            segments.push(Placed::new(&mut arena, units, capacity, of));
        }
        for slot in &woven.slots {
            let segment = |number: u32| segments.get(number as usize).ok_or("a slot of no map");
            let word = match slot.fill {
                Fill::Zero => 0,
                Fill::Base(number) => segment(number)?.base,
                Fill::Capacity(number) => segment(number)?.segment.capacity,
                Fill::Cursor(number) => segment(number)?.cursor,
                Fill::Drops(number) => segment(number)?.drops,
                Fill::Units(number) => segment(number)?.segment.units,
                Fill::Counts(number) => segment(number)?.counts,
                Fill::Launch => LAUNCH,
            };
            let bytes = word.to_le_bytes();
            let bytes = bytes.get(..slot.size as usize).ok_or("a slot of more than 8 bytes")?;
            put(context.offset + slot.offset, bytes).ok_or("a slot outside of the context")?;
        }
    }

    let launch = Launch {
        grid: job.shape.grid,
        block: job.shape.block,
        cluster: None,
        shared: job.shape.shared,
        params: &params,
        globals,
        constants,
        cooperative: job.shape.cooperative,
    };
    let named = [("variables", globals), ("constants", constants)].map(|(what, at)| (what.to_owned(), at));
    let buffers = buffers.iter().enumerate().map(|(number, &at)| (format!("buffer {number}"), at));
    let places: Vec<(String, u64)> = named.into_iter().chain(buffers).collect();
    let before: Vec<Vec<u8>> = places.iter().map(|(_, at)| arena.download(*at)).collect();

    let grid = Grid::new(program, name, launch, options.clone()).map_err(|why| why.to_string())?;
    let mut ran = Ran::default();
    let mut clocks = vec![0; options.sms as usize];
    for cluster in 0..grid.clusters() {
        let sm = grid.sm(cluster);
        let mut outcome = grid.outcome();
        let clock = clocks.get_mut(sm as usize).ok_or("a multiprocessor that is not there")?;
        let mut watch = |seen: &Accessed<'_>| watch(&params, seen);
        grid.run_cluster_watched(cluster, clock, &arena, &mut outcome, &mut watch)
            .map_err(|fault| fault.to_string())?;
        ran.printed.push_str(&String::from_utf8_lossy(&outcome.printed));
        ran.parts.push(Part { sm, stats: outcome.stats });
    }

    let held =
        |((what, at), before): ((String, u64), Vec<u8>)| Held { what, before, now: arena.download(at) };
    ran.memory = places.into_iter().zip(before).map(held).collect();
    ran.segments = segments.into_iter().map(|placed| placed.read(&arena)).collect();
    ran.params = params;
    Ok(ran)
}

/// An argument's bytes, its buffers in memory.
fn place(arg: &Given, arena: &mut Arena, buffers: &mut Vec<u64>) -> Vec<u8> {
    match arg {
        Given::Buffer(content) => {
            let at = arena.upload(content);
            buffers.push(at);
            at.to_le_bytes().to_vec()
        }
        Given::Value(bytes) => bytes.clone(),
        Given::Struct(members) => {
            let mut all: Vec<u8> = Vec::new();
            for member in members {
                let bytes = place(member, arena, buffers);
                all.resize(all.len().next_multiple_of(bytes.len().clamp(1, 8)), 0);
                all.extend(bytes);
            }
            all
        }
    }
}

/// Where two runs of a job differ, in words; nothing where they do not.
///
/// # Errors
/// The first difference.
pub fn same(plain: &Ran, probed: &Ran) -> Result<(), String> {
    for (plain, probed) in plain.memory.iter().zip(&probed.memory) {
        let bytes = |held: &Held, at: usize| (held.before.get(at).copied(), held.now.get(at).copied());
        let length = plain.now.len().max(probed.now.len());
        let differs = |&at: &usize| {
            let ((was, is), (was_probed, is_probed)) = (bytes(plain, at), bytes(probed, at));
            // Addresses of functions differ from the start, since a program has its own.
            is != is_probed && !(was != was_probed && was == is && was_probed == is_probed)
        };
        if let Some(at) = (0..length).find(differs) {
            let (what, (_, is), (_, is_probed)) = (&plain.what, bytes(plain, at), bytes(probed, at));
            return Err(format!(
                "{what} differs with the probe, from byte {at} on: {is:x?} became {is_probed:x?}"
            ));
        }
    }
    if plain.printed != probed.printed {
        return Err(format!("printed {:?}, with the probe {:?}", plain.printed, probed.printed));
    }
    let threads = |ran: &Ran| ran.parts.iter().map(|part| part.stats.threads).sum::<u64>();
    if threads(plain) != threads(probed) {
        return Err("threads were lost".to_owned());
    }
    Ok(())
}

/// The unit of a map, as the wire has it.
pub(crate) fn unit(unit: nt_ir::program::Unit) -> Unit {
    match unit {
        nt_ir::program::Unit::Thread => Unit::Thread,
        nt_ir::program::Unit::Warp => Unit::Warp,
        nt_ir::program::Unit::Block => Unit::Block,
    }
}
