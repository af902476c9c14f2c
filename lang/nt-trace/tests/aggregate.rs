//! Aggregations: cells as a hook writes them, and what they come to by hand.

#![allow(clippy::unwrap_used, reason = "a test stops at the first thing that is wrong")]

use nt_trace::ntm::{Func, Kernel, Key, KeyKind, Manifest, Probe, SCHEMA, Table, Type, Unit};
use nt_trace::ntt::{Cells, Event, FileWriter, Trace, Trouble, Value};
use nt_trace::{Aggregates, aggregate};
use nt_wire::frame::{self, Data, Launch, Start};

fn key(kind: KeyKind, name: &str) -> Key {
    Key { kind, name: name.to_owned() }
}

fn cells(texts: &[&[&str]]) -> Vec<Vec<String>> {
    texts.iter().map(|cell| cell.iter().map(|text| (*text).to_owned()).collect()).collect()
}

/// `@bytes[op] = sum(bytes)`
fn bytes_by_op(ops: &[&[&str]]) -> Table {
    Table {
        name: "bytes".to_owned(),
        func: Func::Sum,
        ty: Type::U64,
        unit: Unit::Sm,
        persistent: true,
        stride: 8 * ops.len() as u32,
        keys: vec![key(KeyKind::Site, "op")],
        cells: cells(ops),
    }
}

/// `@by[block, op] = count()`
fn by_block(ops: &[&[&str]]) -> Table {
    Table {
        name: "by".to_owned(),
        func: Func::Count,
        unit: Unit::Block,
        persistent: false,
        keys: vec![key(KeyKind::Unit, "block"), key(KeyKind::Site, "op")],
        ..bytes_by_op(ops)
    }
}

/// `@cu[cu, kernel] = sum(x as s64)`
fn by_cu(kernel: &str) -> Table {
    Table {
        name: "cu".to_owned(),
        ty: Type::S64,
        keys: vec![key(KeyKind::Cu, "cu"), key(KeyKind::Site, "kernel")],
        ..bytes_by_op(&[&[kernel]])
    }
}

/// A file in the making.
struct File {
    writer: FileWriter,
    bytes: Vec<u8>,
}

impl File {
    fn new() -> File {
        let mut file = File { writer: FileWriter::new(), bytes: Vec::new() };
        file.frame(&Start { protocol: nt_wire::PROTOCOL, ..Start::default() });
        file
    }

    fn frame(&mut self, body: &impl frame::Body) {
        let bytes = self.writer.frame(body);
        self.bytes.extend(bytes);
    }

    fn kernel(&mut self, id: u32, name: &str, tables: Vec<Table>) {
        let manifest = Manifest {
            schema: SCHEMA,
            tool: String::new(),
            probe: Probe { name: "p".to_owned(), hash: String::new() },
            original: String::new(),
            target: "sm_90".to_owned(),
            woven_bytes: 0,
            kernels: vec![Kernel { name: name.to_owned(), tables, ..Kernel::default() }],
            refused: Vec::new(),
        };
        let manifest = manifest.entry(name).unwrap();
        self.frame(&frame::Kernel { id, arch: 90, name: name.to_owned(), manifest });
    }

    fn launch(&mut self, number: u64, kernel: u32, blocks: u32) {
        let (grid, block) = ([blocks, 1, 1], [32, 1, 1]);
        self.frame(&Launch { number, kernel, grid, block, sms: 2, ..Launch::default() });
    }

    fn data(&mut self, fixed: Data, words: &[u64]) {
        let data: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.bytes.extend(self.writer.data(&Data { bytes: data.len() as u64, ..fixed }, &data));
    }

    /// Cells of a table that outlives launches, on two SMs.
    fn persistent(&mut self, kernel: u32, map: u32, words: &[u64]) {
        self.data(
            Data { launch: Data::PERSISTENT, kernel, map, units: 2, capacity: 2, ..Data::default() },
            words,
        );
    }

    /// Cells of a launch, with room for all.
    fn of_launch(&mut self, launch: u64, kernel: u32, map: u32, units: u64, words: &[u64]) {
        self.data(Data { launch, kernel, map, units, capacity: units, ..Data::default() }, words);
    }

    fn troubles(&self) -> usize {
        Trace::new(&self.bytes).filter(|event| matches!(event, Event::Trouble(Trouble::Stray { .. }))).count()
    }
}

/// What files come to, and the frames that did not fit.
fn add(files: &[&File]) -> (Aggregates, Vec<aggregate::Unfit>) {
    let (mut aggregates, mut unfit) = (Aggregates::default(), Vec::new());
    for event in files.iter().flat_map(|file| Trace::new(&file.bytes)) {
        if let Event::Cells(batch) = event {
            unfit.extend(aggregates.add(&batch).err());
        }
    }
    (aggregates, unfit)
}

fn check(files: &[&File], most: usize, expected: &str) {
    let (aggregates, unfit) = add(files);
    assert_eq!(aggregates.text(most, &|name| format!("<{name}>")), expected);
    assert_eq!(unfit, []);
    assert_eq!(aggregates.is_empty(), expected.is_empty());
}

#[test]
fn copies_kernels_devices_and_processes_add_up() {
    let mut one = File::new();
    // Each kernel numbers its own sites.
    one.kernel(1, "a", vec![bytes_by_op(&[&["ld.global.f32"], &["st.global.f32"]])]);
    one.kernel(
        2,
        "b",
        vec![bytes_by_op(&[&["red.global.add.u32"], &["ld.global.f32"], &["atom.global.add.u32"]])],
    );
    one.persistent(1, 0, &[4000, 1000, 96, 24]);
    one.persistent(2, 0, &[5, 1, 0, 7, 2, 0]);
    let mut two = File::new();
    two.kernel(1, "a", vec![bytes_by_op(&[&["ld.global.f32"], &["st.global.f32"]])]);
    two.persistent(1, 0, &[10, 0, 20, 0]);
    // ld: 4000 + 96 + (1 + 2) + 10 + 20; st: 1000 + 24; red: 5 + 7; atom: never run.
    check(
        &[&one, &two],
        40,
        "@bytes: 1 row of 0\n\
         @bytes[red.global.add.u32]: 12\n\
         @bytes[st.global.f32]: 1024\n\
         @bytes[ld.global.f32]: 4129\n",
    );
    check(
        &[&two, &one],
        1,
        "@bytes: 2 smaller rows, together 1036; 1 row of 0\n@bytes[ld.global.f32]: 4129\n",
    );
}

#[test]
fn ties_go_by_key() {
    let mut file = File::new();
    file.kernel(1, "a", vec![bytes_by_op(&[&["c"], &["b"], &["a"]])]);
    file.persistent(1, 0, &[3, 2, 1, 0, 1, 2]);
    check(&[&file], 40, "@bytes[a]: 3\n@bytes[b]: 3\n@bytes[c]: 3\n");
}

#[test]
fn a_multiprocessor_may_be_a_key_and_so_may_the_kernel() {
    let mut file = File::new();
    file.kernel(1, "_Z1av", vec![by_cu("_Z1av")]);
    file.kernel(2, "b\n", vec![by_cu("b\n")]);
    file.persistent(1, 0, &[u64::MAX, 5]);
    file.persistent(1, 0, &[0, 1]);
    file.persistent(2, 0, &[7, (-7i64).cast_unsigned()]);
    check(&[&file], 40, "@cu[1, <b\\n>]: -7\n@cu[0, <_Z1av>]: -1\n@cu[1, <_Z1av>]: 6\n@cu[0, <b\\n>]: 7\n");
}

#[test]
fn what_is_one_cell_to_the_program_wraps_as_one() {
    let mut table = bytes_by_op(&[&["a"]]);
    let of = |table: &Table| {
        let mut file = File::new();
        file.kernel(1, "a", vec![table.clone()]);
        // 10 less than nothing on one SM, 13 on the other.
        file.persistent(1, 0, &[10u64.wrapping_neg(), 13]);
        file
    };
    check(&[&of(&table)], 40, "@bytes[a]: 3\n");
    table.ty = Type::S64;
    check(&[&of(&table)], 40, "@bytes[a]: 3\n");
    // Two processes' cells do not.
    let mut full = File::new();
    table.ty = Type::U64;
    full.kernel(1, "a", vec![table]);
    full.persistent(1, 0, &[u64::MAX, 0]);
    check(&[&full, &full], 40, "@bytes[a]: 36893488147419103230\n");
}

#[test]
fn a_table_may_have_no_key_no_name_and_no_site() {
    let alone = Table { name: String::new(), keys: Vec::new(), ..bytes_by_op(&[&[]]) };
    let mut file = File::new();
    file.kernel(1, "a", vec![alone, bytes_by_op(&[])]);
    file.persistent(1, 0, &[3, 4]);
    file.persistent(1, 1, &[]);
    check(&[&file], 40, "@: 7\n\n@bytes: no site\n");
    check(&[&File::new()], 40, "");
}

#[test]
fn where_the_launch_is_a_key_a_kernel_is_a_line() {
    let mut file = File::new();
    let ops: &[&[&str]] = &[&["ld"], &["st"]];
    file.kernel(1, "a", vec![by_block(ops)]);
    file.kernel(2, "b", vec![by_block(ops)]);
    for (launch, kernel, blocks) in [(0, 1, 3), (1, 1, 1), (2, 2, 2)] {
        file.launch(launch, kernel, blocks);
    }
    // ld and st of each block.
    file.of_launch(0, 1, 0, 3, &[10, 0, 20, 0, 60, 0]);
    file.of_launch(1, 1, 0, 1, &[11, 0]);
    file.of_launch(2, 2, 0, 2, &[1000, 4, 1001, 4]);
    // a: ld 90 and 11, of four blocks 10 11 20 60: the lower in the middle is 11. Launches: (90 + 11) / 2.
    check(
        &[&file],
        40,
        "@by[block, op]: 2110 in 3 launches\n  1 row of 0\n\
        \x20 op  kernel  launches  total  a launch  a block: least  median  most\n\
        \x20 st  <b>            1      8         8               4       4     4\n\
        \x20 ld  <a>            2    101      50.5              10      11    60\n\
        \x20 ld  <b>            1   2001      2001            1000    1000  1001\n",
    );
    check(
        &[&file],
        1,
        "@by[block, op]: 2110 in 3 launches\n  2 smaller rows, together 109; 1 row of 0\n\
        \x20 op  kernel  launches  total  a launch  a block: least  median  most\n\
        \x20 ld  <b>            1   2001      2001            1000    1000  1001\n",
    );
}

#[test]
fn what_had_no_room_is_counted() {
    let mut file = File::new();
    file.kernel(1, "a", vec![bytes_by_op(&[&["ld"]]), by_block(&[&["ld"]])]);
    file.launch(0, 1, 5);
    file.data(Data { launch: 0, kernel: 1, map: 1, units: 5, capacity: 2, ..Data::default() }, &[1, 2]);
    let launch = Data::PERSISTENT;
    file.data(Data { launch, kernel: 1, map: 0, units: 4, capacity: 3, ..Data::default() }, &[1, 1, 1]);
    check(
        &[&file],
        40,
        "@by[block, op]: 3 in 1 launch\n\
        \x20 op  kernel  launches  total  a launch  a block: least  median  most\n\
        \x20 ld  <a>            1      3         3               1       1     2\n\
         dropped: 3 blocks\n\
         \n\
         @bytes[ld]: 3\n\
         dropped: 1 SM\n",
    );
}

/// A device of 2 multiprocessors may number them 0 and 3.
#[test]
fn multiprocessors_beyond_their_count_are_read() {
    let mut file = File::new();
    file.kernel(1, "a", vec![bytes_by_op(&[&["ld"]]), by_cu("a")]);
    let fixed = Data { launch: Data::PERSISTENT, kernel: 1, units: 2, capacity: 5, ..Data::default() };
    file.data(Data { map: 0, ..fixed }, &[1, 0, 0, 4, 0]);
    file.data(Data { map: 1, ..fixed }, &[1, 0, 0, 4, 0]);
    check(&[&file], 40, "@bytes[ld]: 5\n\n@cu: 2 rows of 0\n@cu[0, <a>]: 1\n@cu[3, <a>]: 4\n");
}

/// Nobody walks over units that are not in the data.
#[test]
fn a_table_without_cells_takes_no_time() {
    let mut file = File::new();
    let table = Table { stride: 0, ..bytes_by_op(&[]) };
    file.kernel(1, "a", vec![table.clone()]);
    let (units, capacity) = (u64::MAX, u64::MAX);
    file.data(Data { launch: Data::PERSISTENT, kernel: 1, units, capacity, ..Data::default() }, &[]);
    check(&[&file], 40, "@bytes: no site\n");
    assert_eq!(Cells::new(&table, units, capacity, &[]).unwrap().stored(), 0);
}

#[test]
fn data_that_does_not_fit_is_named_and_adds_nothing() {
    let mut file = File::new();
    file.kernel(1, "a", vec![bytes_by_op(&[&["ld"]]), by_block(&[&["ld"]])]);
    file.launch(0, 1, 5);
    file.persistent(1, 0, &[1]);
    file.of_launch(0, 1, 1, 4, &[1; 4]);
    let (aggregates, unfit) = add(&[&file]);
    let words: Vec<String> = unfit.iter().map(ToString::to_string).collect();
    assert_eq!(
        words,
        [
            "8 bytes of data cannot hold 2 units of a map with 8 bytes a unit, room for 2",
            "4 units, and launch 0 has 5"
        ]
    );
    assert!(aggregates.is_empty());
}

#[test]
fn data_of_nothing_in_the_file_is_stray() {
    let mut file = File::new();
    file.kernel(1, "a", vec![bytes_by_op(&[&["ld"]]), by_block(&[&["ld"]])]);
    file.kernel(2, "b", vec![by_block(&[&["ld"]])]);
    file.launch(0, 1, 1);
    assert_eq!(file.troubles(), 0);
    // A kernel that is not there, a table that is not, one of launches as persistent, a persistent one in a launch,
    // and a launch of another kernel.
    file.persistent(3, 0, &[1, 1]);
    file.persistent(1, 2, &[1, 1]);
    file.persistent(1, 1, &[1, 1]);
    file.of_launch(0, 1, 0, 2, &[1, 1]);
    file.of_launch(0, 2, 0, 1, &[1]);
    assert_eq!(file.troubles(), 5);
    assert!(add(&[&file]).0.is_empty());
}

#[test]
fn cells_are_typed_and_every_length_is_checked() {
    let table = Table { ty: Type::S64, stride: 24, ..bytes_by_op(&[&["a"], &["b"]]) };
    let words = [1u64, (-2i64).cast_unsigned(), 99, 3, 4, 99];
    let data: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let cells = Cells::new(&table, 2, 2, &data).unwrap();
    let of = |unit: u64| cells.of(unit).collect::<Vec<Value>>();
    assert_eq!(of(0), [Value::Signed(1), Value::Signed(-2)]);
    assert_eq!(of(1), [Value::Signed(3), Value::Signed(4)]);
    assert_eq!(of(2), []);
    assert_eq!(of(u64::MAX), []);
    for (units, capacity, length, fits) in [
        (2, 2, 47, false),
        (3, 2, 48, true),
        (3, 3, 48, false),
        (2, 3, 48, false),
        (0, 0, 0, true),
        (u64::MAX, u64::MAX, 48, false),
        (u64::MAX, 2, 48, true),
    ] {
        let found = Cells::new(&table, units, capacity, &data[..length]);
        assert_eq!(found.is_ok(), fits, "{units} {capacity} {length}");
    }
    let launched = Table { unit: Unit::Block, ..table.clone() };
    assert!(Cells::new(&launched, 2, 3, &data).is_ok(), "what the launch has no units for need not be there");
    // A table that no manifest would hold.
    assert!(Cells::new(&Table { stride: 8, ..table }, 2, 2, &data).is_err());
}
