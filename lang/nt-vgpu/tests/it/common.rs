//! What the tests of this crate share: reading a text, and a device with its memory.

use nt_vgpu::{Arena, Failure, Fault, FaultKind, Launch, Memory, Options, Outcome, Program};

/// A file of the repository.
pub(crate) fn read(path: &str) -> String {
    let path = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// A program of a text.
pub(crate) fn load(text: &str) -> Program {
    let (module, mut found) = nt_ptx::parse(text);
    let info = nt_ptx::resolve(&module, &mut found);
    assert!(!found.has_errors(), "{found:?}");
    Program::load(&module, &info).unwrap_or_else(|found| panic!("{found:?}"))
}

/// A program with its variables in memory.
pub(crate) struct Device {
    pub(crate) program: Program,
    pub(crate) memory: Arena,
    pub(crate) globals: u64,
    pub(crate) constants: u64,
    pub(crate) options: Options,
}

impl Device {
    pub(crate) fn new(text: &str) -> Self {
        let program = load(text);
        let mut memory = Arena::new();
        let [globals, constants] =
            [program.globals(), program.constants()].map(|segment| memory.allocate(segment.size as usize));
        program.initialise(&memory, globals, constants).expect("the segments have their sizes");
        Device {
            program,
            memory,
            globals,
            constants,
            options: Options { max_steps: 1 << 26, ..Options::default() },
        }
    }

    /// A kernel around statements, with one pointer as `%out`, some registers, and `%i`, the thread's number.
    pub(crate) fn with_body(body: &str) -> Self {
        Self::new(&format!(
            ".version 9.0\n.target sm_100\n.address_size 64\n.extern .shared .align 16 .b8 dynamic[];\n\
             .visible .entry k(.param .u64 p) {{\n.reg .pred %p<10>; .reg .b16 %h<10>; .reg .b32 %r<60>, %i; \
             .reg .f32 %f<20>; .reg .b64 %rd<20>, %out; .reg .f64 %d<10>;\n\
             ld.param.u64 %out, [p]; mov.u32 %i, %tid.x;\n{body}\nret;\n}}\n"
        ))
    }

    pub(crate) fn run(&self, kernel: &str, mut launch: Launch<'_>) -> Result<Outcome, Failure> {
        (launch.globals, launch.constants) = (self.globals, self.constants);
        nt_vgpu::run(&self.program, kernel, launch, &self.memory, self.options.clone())
    }

    /// The first of the statements is on line 8. Runs kernel `k` of [`Device::with_body`] for so many blocks of so many threads over so many words of 0.
    pub(crate) fn words(&mut self, blocks: u32, threads: u32, words: usize) -> Result<Vec<u32>, Failure> {
        let out = self.memory.allocate(words * 4);
        let params = out.to_le_bytes();
        let launch = Launch {
            grid: [blocks, 1, 1],
            block: [threads, 1, 1],
            shared: 4096,
            params: &params,
            ..Launch::default()
        };
        self.run("k", launch)?;
        Ok(words_of(&self.memory.download(out)))
    }

    pub(crate) fn upload_words(&mut self, words: &[u32]) -> u64 {
        self.memory.upload(&bytes_of(words))
    }

    /// The address of a variable of the program.
    pub(crate) fn variable(&self, name: &str) -> u64 {
        let find = |segment: &nt_vgpu::Segment, base: u64| {
            segment.variables.iter().find(|v| v.name == name).map(|v| base + v.offset)
        };
        find(self.program.globals(), self.globals)
            .or_else(|| find(self.program.constants(), self.constants))
            .expect("a variable of that name")
    }

    pub(crate) fn write_words(&self, address: u64, words: &[u32]) {
        self.memory.write(address, &bytes_of(words)).expect("memory there");
    }
}

pub(crate) fn bytes_of(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

pub(crate) fn words_of(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

pub(crate) fn fault(result: Result<impl std::fmt::Debug, Failure>) -> Box<Fault> {
    match result {
        Err(Failure::Fault(fault)) => fault,
        other => panic!("no fault: {other:?}"),
    }
}

pub(crate) fn is_deadlock(fault: &Fault) -> bool {
    matches!(fault.kind, FaultKind::Deadlock(_))
}

/// Parameters, each aligned to its size.
pub(crate) fn params(list: &[&[u8]]) -> Vec<u8> {
    let mut all = Vec::new();
    for one in list {
        all.resize(all.len().next_multiple_of(one.len().min(8)), 0);
        all.extend_from_slice(one);
    }
    all
}
