//! Traces made by hand, as a hook would write them.

#![allow(dead_code, unreachable_pub, reason = "a module of several tests, each of which takes a part of it")]

pub mod accesses;

use nt_trace::ntm::{
    Column, Context, Field, Func, Kernel, Key, KeyKind, Limits, Manifest, Map, Presence, Probe, Resources,
    SCHEMA, Site, Source, Table, Type, Unit,
};
use nt_trace::ntt::FileWriter;
use nt_wire::frame::{self, Body, Data, End, Launch, Start};
use std::collections::BTreeMap;

/// block_sched as the narrowing pass leaves it: 16 bytes a warp, presence in the top bit of `cu`.
pub fn block_sched() -> Map {
    let field = |name: &str, ty: Type, offset| Field { name: name.to_owned(), ty, offset, size: ty.size() };
    let column = |name: &str, ty, source| Column { name: name.to_owned(), ty, source };
    Map {
        name: "block_sched".to_owned(),
        unit: Unit::Warp,
        columnar: false,
        stride: 16,
        fields: vec![field("end", Type::U64, 0), field("elapsed", Type::U32, 8), field("cu", Type::U32, 12)],
        presence: Presence::Bit { field: 2, bit: 31 },
        columns: vec![
            column("start", Type::U64, Source::Difference(0, 1)),
            column("elapsed", Type::U64, Source::Field(1)),
            column("cu", Type::U32, Source::Field(2)),
        ],
        stream: None,
        slots: None,
    }
}

/// A thread map in columns, with a presence byte and a type of every kind.
pub fn values() -> Map {
    let field = |name: &str, ty: Type, offset| Field { name: name.to_owned(), ty, offset, size: ty.size() };
    let column = |name: &str, ty, field| Column { name: name.to_owned(), ty, source: Source::Field(field) };
    Map {
        name: "values".to_owned(),
        unit: Unit::Thread,
        columnar: true,
        stride: 8 + 4 + 2 + 1 + 1,
        fields: vec![
            field("at", Type::Ptr, 0),
            field("x", Type::F32, 8),
            field("delta", Type::S16, 12),
            field("odd", Type::Bool, 14),
        ],
        presence: Presence::Byte { offset: 15 },
        columns: vec![
            column("at", Type::Ptr, 0),
            column("x", Type::F32, 1),
            column("delta", Type::S64, 2),
            column("odd", Type::Bool, 3),
        ],
        stream: None,
        slots: None,
    }
}

/// `@NAME[op] = sum(…)`, copied for each SM, with a cell for each of `ops`.
pub fn by_op(name: &str, ops: &[&str]) -> Table {
    Table {
        name: name.to_owned(),
        func: Func::Sum,
        ty: Type::U64,
        unit: Unit::Sm,
        persistent: true,
        stride: 8 * ops.len() as u32,
        keys: vec![Key { kind: KeyKind::Site, name: "op".to_owned() }],
        cells: ops.iter().map(|op| vec![(*op).to_owned()]).collect(),
    }
}

/// `@NAME[block] = sum(…)`
pub fn by_block(name: &str) -> Table {
    let keys = vec![Key { kind: KeyKind::Unit, name: "block".to_owned() }];
    let cells = vec![vec![]];
    Table { unit: Unit::Block, persistent: false, stride: 8, keys, cells, ..by_op(name, &[]) }
}

/// The manifest of one kernel.
pub fn manifest(kernel: &str, probe: &str, maps: Vec<Map>, tables: Vec<Table>) -> Manifest {
    let takes = |registers| Resources { registers, ..Resources::default() };
    Manifest {
        schema: SCHEMA,
        tool: "0.1.0".to_owned(),
        probe: Probe { name: probe.to_owned(), hash: "00".repeat(32) },
        original: "11".repeat(32),
        target: "sm_90".to_owned(),
        woven_bytes: 4711,
        kernels: vec![Kernel {
            name: kernel.to_owned(),
            context: Context { size: 24, slots: Vec::new() },
            maps,
            tables,
            limits: Limits { launch_cycles: Some(1 << 32) },
            before: Some(takes(8)),
            after: Some(takes(10)),
            ..Kernel::default()
        }],
        refused: Vec::new(),
    }
}

/// A record of [`block_sched`].
pub fn record(start: u64, elapsed: u32, cu: u32) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&(start + u64::from(elapsed)).to_le_bytes());
    bytes[8..12].copy_from_slice(&elapsed.to_le_bytes());
    bytes[12..].copy_from_slice(&(cu | 1 << 31).to_le_bytes());
    bytes
}

/// A unit that saved nothing.
pub const ABSENT: [u8; 16] = [0; 16];

/// A file in the making.
pub struct Trace {
    writer: FileWriter,
    pub bytes: Vec<u8>,
    kernels: u32,
    pub launches: u64,
    /// The kernel of each launch.
    of: BTreeMap<u64, u32>,
}

impl Trace {
    /// Of a process `app` on `host`.
    pub fn new(pid: u32) -> Trace {
        Trace::of(&Start {
            protocol: nt_wire::PROTOCOL,
            pid,
            start: 100,
            wall_ns: 1,
            monotonic_ns: 2,
            host: "host".to_owned(),
            boot: "boot".to_owned(),
            exe: "/bin/app".to_owned(),
            command: vec!["app".to_owned()],
            version: "0.1.0".to_owned(),
        })
    }

    /// With this start frame.
    pub fn of(start: &Start) -> Trace {
        let mut trace = Trace {
            writer: FileWriter::new(),
            bytes: Vec::new(),
            kernels: 0,
            launches: 0,
            of: BTreeMap::new(),
        };
        trace.frame(start);
        trace
    }

    pub fn frame(&mut self, body: &impl Body) {
        let bytes = self.writer.frame(body);
        self.bytes.extend(bytes);
    }

    /// A kernel; its id comes back.
    pub fn kernel(&mut self, name: &str, probe: &str, maps: Vec<Map>) -> u32 {
        self.kernel_of(name, &manifest(name, probe, maps, Vec::new()))
    }

    /// A kernel with aggregations.
    pub fn counted(&mut self, name: &str, probe: &str, tables: Vec<Table>) -> u32 {
        self.kernel_of(name, &manifest(name, probe, Vec::new(), tables))
    }

    /// A kernel with streams, whose codes name these sites.
    pub fn traced(&mut self, name: &str, probe: &str, maps: Vec<Map>, sites: &[Site]) -> u32 {
        let mut manifest = manifest(name, probe, maps, Vec::new());
        for kernel in &mut manifest.kernels {
            kernel.sites = sites.to_vec();
        }
        self.kernel_of(name, &manifest)
    }

    /// A kernel of this manifest.
    pub fn kernel_of(&mut self, name: &str, manifest: &Manifest) -> u32 {
        let entry = manifest.entry(name).expect("the kernel is in it");
        let id = self.kernels;
        self.kernels += 1;
        self.frame(&frame::Kernel { id, arch: 90, name: name.to_owned(), manifest: entry });
        id
    }

    /// A launch on 4 SMs of 2 GHz, complete after 10 µs; its number comes back.
    pub fn launch(&mut self, kernel: u32, grid: [u32; 3], block: [u32; 3]) -> u64 {
        let number = self.launches;
        self.launch_as(&Launch {
            number,
            kernel,
            grid,
            block,
            sms: 4,
            launched_ns: 1_000_000,
            complete_ns: 1_010_000,
            clock_khz: 2_000_000,
            ..Launch::default()
        });
        number
    }

    pub fn launch_as(&mut self, launch: &Launch) {
        self.launches += 1;
        self.of.insert(launch.number, launch.kernel);
        self.frame(launch);
    }

    /// The records of one map of one launch, room rounded up to 16 units.
    pub fn data(&mut self, launch: u64, map: u32, units: u64, data: &[u8]) {
        let kernel = *self.of.get(&launch).unwrap_or(&0);
        let capacity = units.next_multiple_of(16);
        self.data_as(Data { launch, map, kernel, units, capacity, ..Data::default() }, data);
    }

    pub fn data_as(&mut self, fixed: Data, data: &[u8]) {
        let bytes = self.writer.data(&Data { bytes: data.len() as u64, ..fixed }, data);
        self.bytes.extend(bytes);
    }

    /// A stream of one launch, in parts.
    pub fn stream(&mut self, launch: u64, map: u32, parts: &[Vec<u8>]) {
        let kernel = *self.of.get(&launch).unwrap_or(&0);
        for part in parts {
            self.data_as(Data { launch, map, kernel, ..Data::default() }, part);
        }
    }

    /// The counts and records of one array with a capacity of one launch.
    pub fn saves(&mut self, launch: u64, map: u32, units: u64, capacity: u64, data: &[u8]) {
        let kernel = *self.of.get(&launch).unwrap_or(&0);
        self.data_as(Data { launch, map, kernel, units, capacity, ..Data::default() }, data);
    }

    /// The cells of one table of one launch, a word each, room rounded up to 16 units.
    pub fn cells(&mut self, launch: u64, map: u32, units: u64, cells: &[u64]) {
        let each = (cells.len() as u64).checked_div(units).unwrap_or_default();
        let mut data: Vec<u8> = cells.iter().flat_map(|cell| cell.to_le_bytes()).collect();
        data.resize((units.next_multiple_of(16) * each * 8) as usize, 0);
        self.data(launch, map, units, &data);
    }

    /// The cells of a table that outlives launches, on 4 SMs of a device.
    pub fn persistent(&mut self, kernel: u32, map: u32, device: u32, cells: &[u64]) {
        let data: Vec<u8> = cells.iter().flat_map(|cell| cell.to_le_bytes()).collect();
        let launch = Data::PERSISTENT;
        let fixed = Data { launch, map, kernel, units: 4, capacity: 4, device, ..Data::default() };
        self.data_as(fixed, &data);
    }

    /// The records of a packed map, padded to the room.
    pub fn records(&mut self, launch: u64, map: u32, records: &[[u8; 16]]) {
        let mut data = records.concat();
        data.resize(records.len().next_multiple_of(16) * 16, 0);
        self.data(launch, map, records.len() as u64, &data);
    }

    /// With its end frame.
    pub fn end(mut self) -> Vec<u8> {
        let launches = self.launches;
        self.frame(&End { launches, probed: launches, collected: launches });
        self.bytes
    }
}
