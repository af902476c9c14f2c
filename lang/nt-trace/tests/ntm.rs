//! Manifests: their text, and that a reader may rely on what was parsed.

#![allow(clippy::unwrap_used, reason = "a test stops at the first thing that is wrong")]

use nt_trace::Manifest;
use nt_trace::ntm::{
    Assumption, Callee, Code, Column, Constant, Context, ContextSlot, Error, Field, Fill, Form, Func, Kernel,
    Key, KeyKind, Lanes, Limits, Linear, Map, Param, Pin, Presence, Probe, Refused, Resources, SCHEMA, Site,
    Source, Stream, Table, Term, Told, Type, Uncovered, Unit,
};

/// `@bytes[line, op] = sum(bytes)`, at two sites.
fn bytes_by_op() -> Table {
    let key = |name: &str| Key { kind: KeyKind::Site, name: name.to_owned() };
    let cell = |texts: [&str; 2]| texts.map(str::to_owned).to_vec();
    Table {
        name: "bytes".to_owned(),
        func: Func::Sum,
        ty: Type::U64,
        unit: Unit::Sm,
        persistent: true,
        stride: 16,
        keys: vec![key("line"), key("op")],
        cells: vec![cell(["a.cu:12", "ld.global.f32"]), cell(["a.cu:13", "st.global.f32"])],
    }
}

/// `@[block] = count()`
fn by_block() -> Table {
    Table {
        name: String::new(),
        func: Func::Count,
        ty: Type::U64,
        unit: Unit::Block,
        persistent: false,
        stride: 8,
        keys: vec![Key { kind: KeyKind::Unit, name: "block".to_owned() }],
        cells: vec![vec![]],
    }
}

/// block_sched in a kernel of two parameters.
fn example() -> Manifest {
    let field = |name: &str, ty: Type, offset| Field { name: name.to_owned(), ty, offset, size: ty.size() };
    let map = Map {
        name: "block_sched".to_owned(),
        unit: Unit::Warp,
        columnar: false,
        stride: 16,
        fields: vec![field("end", Type::U64, 0), field("cu", Type::U32, 12)],
        presence: Presence::Bit { field: 1, bit: 31 },
        columns: vec![Column { name: "cu".to_owned(), ty: Type::U32, source: Source::Field(1) }],
        stream: None,
        slots: None,
    };
    let kernel = Kernel {
        name: "fill".to_owned(),
        params: vec![Param { offset: 0, size: 8 }, Param { offset: 8, size: 4 }],
        context: Context {
            size: 24,
            slots: vec![
                ContextSlot { offset: 0, size: 8, fill: Fill::Zero },
                ContextSlot { offset: 8, size: 8, fill: Fill::Base { map: 0 } },
                ContextSlot { offset: 16, size: 8, fill: Fill::Capacity { map: 0 } },
            ],
        },
        maps: vec![map],
        tables: vec![bytes_by_op(), by_block()],
        pins: vec![Pin { symbol: "total".to_owned(), index: 0 }],
        constants: vec![Constant { symbol: "weights".to_owned(), size: 256 }],
        sites: vec![Site {
            id: 1,
            kind: "kernel:exit".to_owned(),
            opcode: "ret".to_owned(),
            line: 41,
            column: 2,
            file: None,
            source_line: None,
        }],
        uncovered: vec![Uncovered {
            function: "fill".to_owned(),
            kind: Callee::Pointer,
            names: vec!["f".to_owned()],
            calls: 2,
            line: 17,
            column: 2,
        }],
        assumes: vec!["flat_grid".to_owned()],
        limits: Limits { launch_cycles: Some(1 << 32) },
        before: None,
        after: Some(Resources { registers: 10, ..Resources::default() }),
    };
    Manifest {
        schema: SCHEMA,
        tool: "0.1.0".to_owned(),
        probe: Probe { name: "block_sched".to_owned(), hash: "9f".to_owned() },
        original: "51".to_owned(),
        target: "sm_90".to_owned(),
        woven_bytes: 4711,
        kernels: vec![kernel],
        refused: vec![Refused { name: "spin".to_owned(), reason: "an indirect call".to_owned() }],
    }
}

/// What `docs/formats.md` promises, key by key.
const TEXT: &str = r#"{"schema":4,"tool":"0.1.0","probe":{"name":"block_sched","hash":"9f"},"original":"51","target":"sm_90","woven_bytes":4711,"kernels":[{"name":"fill","params":[{"offset":0,"size":8},{"offset":8,"size":4}],"context":{"size":24,"slots":[{"offset":0,"size":8,"fill":"zero"},{"offset":8,"size":8,"fill":"base","map":0},{"offset":16,"size":8,"fill":"capacity","map":0}]},"maps":[{"name":"block_sched","unit":"warp","columnar":false,"stride":16,"fields":[{"name":"end","type":"u64","offset":0,"size":8},{"name":"cu","type":"u32","offset":12,"size":4}],"presence":{"bit":{"field":1,"bit":31}},"columns":[{"name":"cu","type":"u32","source":{"field":1}}],"stream":null,"slots":null}],"tables":[{"name":"bytes","func":"sum","type":"u64","unit":"sm","persistent":true,"stride":16,"keys":[{"kind":"site","name":"line"},{"kind":"site","name":"op"}],"cells":[["a.cu:12","ld.global.f32"],["a.cu:13","st.global.f32"]]},{"name":"","func":"count","type":"u64","unit":"block","persistent":false,"stride":8,"keys":[{"kind":"unit","name":"block"}],"cells":[[]]}],"pins":[{"symbol":"total","index":0}],"constants":[{"symbol":"weights","size":256}],"sites":[{"id":1,"kind":"kernel:exit","opcode":"ret","line":41,"column":2,"file":null,"source_line":null}],"uncovered":[{"function":"fill","kind":"pointer","names":["f"],"calls":2,"line":17,"column":2}],"assumes":["flat_grid"],"limits":{"launch_cycles":4294967296},"before":null,"after":{"registers":10,"spill_stores":0,"spill_loads":0,"shared":0,"stack":0}}],"refused":[]}"#;

#[test]
fn the_text_is_the_documented_one() {
    assert_eq!(String::from_utf8(example().entry("fill").unwrap()).unwrap(), TEXT);
    assert_eq!(example().entry("spin"), None);
    let pretty = example().to_json();
    assert!(
        pretty.starts_with("{\n  \"schema\": 4,\n  \"tool\": \"0.1.0\",\n") && pretty.ends_with("}\n"),
        "{pretty}"
    );
}

#[test]
fn what_was_written_is_read_back() {
    assert_eq!(Manifest::parse(example().to_json().as_bytes()), Ok(example()));
    let alone = Manifest { refused: Vec::new(), ..example() };
    assert_eq!(Manifest::parse(TEXT.as_bytes()), Ok(alone));
}

#[test]
fn a_presence_byte_and_a_difference() {
    let text = TEXT
        .replace(r#"{"bit":{"field":1,"bit":31}}"#, r#"{"byte":{"offset":8}}"#)
        .replace(r#""source":{"field":1}"#, r#""source":{"difference":[0,1]}"#);
    let manifest = Manifest::parse(text.as_bytes()).unwrap();
    let map = &manifest.kernels[0].maps[0];
    assert_eq!(map.presence, Presence::Byte { offset: 8 });
    assert_eq!(map.columns[0].source, Source::Difference(0, 1));
}

#[test]
fn what_contradicts_itself_is_refused() {
    let check = |from: &str, to: &str, expected: &str| {
        let text = TEXT.replacen(from, to, 1);
        assert_ne!(text, TEXT, "{from}");
        match Manifest::parse(text.as_bytes()) {
            Err(Error::Unsound(why)) => assert_eq!(why, expected),
            other => panic!("{to}: {other:?}"),
        }
    };
    let field = r#"{"name":"cu","type":"u32","offset":12,"size":4}"#;
    let map = "map `block_sched`: ";
    check(field, &field.replace("12", "13"), &format!("{map}field `cu` of 4 bytes at 13 in a record of 16"));
    check(
        field,
        &field.replace("12", "4294967295"),
        &format!("{map}field `cu` of 4 bytes at 4294967295 in a record of 16"),
    );
    check(field, &field.replace("u32", "u64"), &format!("{map}field `cu`: 4 bytes for a u64"));
    check(field, &field.replace("cu", "end"), &format!("{map}two fields `end`"));
    check(r#""bit":31"#, r#""bit":32"#, &format!("{map}bit 32 of field 1 is to tell presence"));
    check(
        r#"{"bit":{"field":1,"#,
        r#"{"bit":{"field":2,"#,
        &format!("{map}bit 31 of field 2 is to tell presence"),
    );
    check(
        r#"{"bit":{"field":1,"bit":31}}"#,
        r#"{"byte":{"offset":16}}"#,
        &format!("{map}the byte that tells presence of 1 bytes at 16 in a record of 16"),
    );
    check(
        r#""source":{"field":1}"#,
        r#""source":{"field":2}"#,
        &format!("{map}column `cu` is made of field 2"),
    );
    check(
        r#"{"name":"cu","type":"u32","source""#,
        r#"{"name":"cu","type":"f32","source""#,
        &format!("{map}column `cu`: a f32 cannot be had of what is stored"),
    );
    // Maps and tables are counted together.
    check(r#""base","map":0"#, r#""base","map":3"#, "kernel `fill`: the context names map 3 of 3");
    check(r#""unit":"warp""#, r#""unit":"sm""#, &format!("{map}records of multiprocessors"));
    check(
        r#""offset":16,"size":8,"fill""#,
        r#""offset":24,"size":8,"fill""#,
        "kernel `fill`: slot of 8 bytes at 24 of a context of 24 bytes",
    );
    check(
        r#""offset":16,"size":8,"fill""#,
        r#""offset":12,"size":8,"fill""#,
        "kernel `fill`: slot of 8 bytes at 12 of a context of 24 bytes",
    );
}

#[test]
fn tables_that_contradict_themselves_are_refused() {
    let check = |from: &str, to: &str, expected: &str| {
        let text = TEXT.replacen(from, to, 1);
        assert_ne!(text, TEXT, "{from}");
        assert_eq!(Manifest::parse(text.as_bytes()), Err(Error::Unsound(expected.to_owned())));
    };
    check(r#""type":"u64","unit":"sm""#, r#""type":"f64","unit":"sm""#, "table `@bytes`: cells of type f64");
    check(r#""stride":16,"keys""#, r#""stride":8,"keys""#, "table `@bytes`: 2 cells in 8 bytes");
    check(r#""stride":16,"keys""#, r#""stride":20,"keys""#, "table `@bytes`: 2 cells in 20 bytes");
    check(r#","st.global.f32"]"#, "]", "table `@bytes`: cell 1 does not have 2 texts");
    check(
        r#""a.cu:13","st.global"#,
        r#""a.cu:12","ld.global"#,
        "table `@bytes`: two cells [a.cu:12, ld.global.f32]",
    );
    let keys =
        |table: &str, unit: &str| format!("table `@{table}`: its keys do not go with cells of a {unit}");
    check(r#""unit":"sm""#, r#""unit":"warp""#, &keys("bytes", "warp"));
    check(r#""unit":"block","pers"#, r#""unit":"sm","pers"#, &keys("", "sm"));
    check(r#""kind":"unit","name":"block""#, r#""kind":"unit","name":"warp""#, &keys("", "block"));
    check(r#""kind":"unit","name":"block""#, r#""kind":"cu","name":"cu""#, &keys("", "block"));
    check(r#"[{"kind":"unit","name":"block"}]"#, "[]", &keys("", "block"));
    let twice = r#"[{"kind":"unit","name":"block"},{"kind":"unit","name":"block"}]"#;
    check(r#"[{"kind":"unit","name":"block"}]"#, twice, &keys("", "block"));
    check(
        r#""persistent":false"#,
        r#""persistent":true"#,
        "table `@`: cells of a block cannot outlive a launch",
    );
}

#[test]
fn another_schema_is_refused_by_number_whatever_its_shape() {
    assert_eq!(Manifest::parse(br#"{"schema":99,"all":"new"}"#), Err(Error::Schema(99)));
    assert!(matches!(Manifest::parse(b"{}"), Err(Error::Json(_))));
    assert!(matches!(Manifest::parse(b""), Err(Error::Json(_))));
    assert!(matches!(Manifest::parse(&[b'['; 100_000]), Err(Error::Json(_))));
}

#[test]
fn changed_bytes_never_panic() {
    for at in 0..TEXT.len() {
        for byte in [b'"', b'9', b'}', 0xff, b'-'] {
            let mut text = TEXT.as_bytes().to_vec();
            text[at] = byte;
            let _ = Manifest::parse(&text);
        }
        let _ = Manifest::parse(&TEXT.as_bytes()[..at]);
    }
}

#[test]
fn the_hook_gets_what_the_manifest_says() {
    use nt_wire::message;
    let twin = example().kernels[0].twin(17, vec![1]);
    let slot = |offset, fill| message::Slot { offset, size: 8, fill };
    let shape = |unit, stride, persistent| message::MapShape {
        persistent,
        ..message::MapShape::records(unit, stride)
    };
    assert_eq!(
        twin,
        message::Twin {
            size: 17,
            params: vec![message::Param { offset: 0, size: 8 }, message::Param { offset: 8, size: 4 }],
            context: 24,
            slots: vec![
                slot(0, message::Fill::Zero),
                slot(8, message::Fill::Base(0)),
                slot(16, message::Fill::Capacity(0)),
            ],
            maps: vec![
                shape(message::Unit::Warp, 16, false),
                shape(message::Unit::Sm, 16, true),
                shape(message::Unit::Block, 8, false),
            ],
            pins: vec![message::Pin { symbol: "total".to_owned(), index: 0 }],
            constants: vec![message::Constant { symbol: "weights".to_owned(), size: 256 }],
            assumes: message::FLAT_GRID,
            wants_params: false,
            manifest: vec![1],
        }
    );
}

#[test]
fn the_layout_of_the_ir_goes_into_the_manifest() {
    use nt_ir::{layout, program};
    let text = "program \"p\"\nmap m: array<warp> { end: u64, elapsed: u32, cu: u32 }\n  show { start: u64 = end - elapsed, cu: u32 = cu }\n";
    let (program, found) = nt_ir::text::parse(text);
    assert!(!found.has_errors());
    let program: program::Program = program.unwrap();
    // Fields by falling size: 8 + 4 + 4 = 16 bytes; the top bit of `cu` tells presence.
    let map = Map::of(&program.maps[0], &layout::lay_out(&program.maps[0], Some(2)));
    let fields: Vec<_> = map.fields.iter().map(|f| (f.name.as_str(), f.offset, f.size)).collect();
    assert_eq!(fields, [("end", 0, 8), ("elapsed", 8, 4), ("cu", 12, 4)]);
    assert_eq!((map.stride, map.presence), (16, Presence::Bit { field: 2, bit: 31 }));
    assert_eq!(map.columns[0].source, Source::Difference(0, 1));
    // Without a bounded field a byte more, and the record is padded to 32.
    let map = Map::of(&program.maps[0], &layout::lay_out(&program.maps[0], None));
    assert_eq!((map.stride, map.presence), (32, Presence::Byte { offset: 16 }));
}

#[test]
fn tables_of_the_ir_go_into_the_manifest() {
    let text = "program \"p\"\ntable @bytes: sum u64 [line, op]\ntable @: count u64 [block]\ntable @cu: sum s64 [cu, op]\n";
    let (program, found) = nt_ir::text::parse(text);
    assert!(!found.has_errors());
    let program = program.unwrap();
    let [bytes, block, cu] = program.tables.as_slice() else { panic!("three tables") };
    // Cells to which many warps add at a time are apart: those of blocks 32 bytes, those of multiprocessors 256.
    assert_eq!(Table::of(bytes, bytes_by_op().cells), Table { stride: 256, ..bytes_by_op() });
    assert_eq!(Table::of(block, vec![vec![]]), Table { stride: 32, ..by_block() });
    let cu = Table::of(cu, vec![vec!["ld".to_owned()]]);
    let key = |kind, name: &str| Key { kind, name: name.to_owned() };
    assert_eq!(cu.keys, [key(KeyKind::Cu, "cu"), key(KeyKind::Site, "op")]);
    assert_eq!((cu.ty, cu.unit, cu.persistent, cu.stride), (Type::S64, Unit::Sm, true, 256));
}

/// A trace of memory: an address and a length a lane, a time, and the line that the code tells.
fn accesses() -> Map {
    let field = |name: &str, ty: Type, offset| Field { name: name.to_owned(), ty, offset, size: ty.size() };
    let column = |name: &str, ty, field| Column { name: name.to_owned(), ty, source: Source::Field(field) };
    let lanes = |field, form| Lanes { field, form };
    let width = Term { param_offset: 8, size: 4, signed: true, factor: 4 };
    let number = |constant, terms| Linear { constant, terms };
    let strides = [
        number(4, vec![]),
        number(8, vec![]),
        number(16, vec![]),
        number(0, vec![width]),
        number(0, vec![Term { factor: 8, ..width }]),
    ];
    let code = |line, form| Code {
        site: 1,
        told: vec![Told { field: 0, value: line }],
        assumes: if matches!(form, Form::Bits(_)) { vec![Assumption::Wraps] } else { vec![] },
        lanes: vec![lanes(2, form), lanes(3, Form::Known(4))],
    };
    Map {
        name: "accesses".to_owned(),
        unit: Unit::Warp,
        columnar: false,
        stride: 16,
        fields: vec![
            field("line", Type::U32, 0),
            field("at", Type::U32, 12),
            field("addr", Type::Ptr, 0),
            field("bytes", Type::U32, 0),
        ],
        presence: Presence::Mask,
        columns: vec![column("line", Type::U32, 0), column("at", Type::U64, 1), column("addr", Type::Ptr, 2)],
        slots: None,
        stream: Some(Stream {
            chunk: 64,
            header: 1,
            bytes: 1 << 20,
            lanes: vec![2, 3],
            told: vec![0],
            codes: vec![
                code(41, Form::Bits(strides)),
                code(41, Form::Stride),
                code(41, Form::List32),
                code(42, Form::List64),
            ],
        }),
    }
}

fn with_stream() -> Manifest {
    let mut manifest = example();
    let fill = |offset, fill| ContextSlot { offset, size: 4, fill };
    manifest.kernels[0].context.slots =
        vec![fill(0, Fill::Units { map: 0 }), fill(20, Fill::Drops { map: 0 })];
    manifest.kernels[0].maps = vec![accesses()];
    manifest
}

#[test]
fn streams_have_the_documented_text() {
    let text = serde_json::to_string(&accesses()).unwrap();
    let (_, stream) = text.split_once(r#""presence":"mask","#).unwrap();
    let (_, stream) = stream.split_once(r#""stream":"#).unwrap();
    let expected = r#"{"chunk":64,"header":1,"bytes":1048576,"lanes":[2,3],"told":[0],"codes":[{"site":1,"told":[{"field":0,"value":41}],"lanes":[{"field":2,"form":{"bits":[{"constant":4,"terms":[]},{"constant":8,"terms":[]},{"constant":16,"terms":[]},{"constant":0,"terms":[{"param_offset":8,"size":4,"signed":true,"factor":4}]},{"constant":0,"terms":[{"param_offset":8,"size":4,"signed":true,"factor":8}]}]}},{"field":3,"form":{"known":4}}],"assumes":["wraps"]},{"site":1,"told":[{"field":0,"value":41}],"lanes":[{"field":2,"form":"stride"},{"field":3,"form":{"known":4}}],"assumes":[]},{"site":1,"told":[{"field":0,"value":41}],"lanes":[{"field":2,"form":"list32"},{"field":3,"form":{"known":4}}],"assumes":[]},{"site":1,"told":[{"field":0,"value":42}],"lanes":[{"field":2,"form":"list64"},{"field":3,"form":{"known":4}}],"assumes":[]}]},"slots":null}"#;
    assert_eq!(stream, expected);
    assert_eq!(Manifest::parse(with_stream().to_json().as_bytes()), Ok(with_stream()));
    let twin = with_stream().kernels[0].twin(17, vec![]);
    assert!(twin.wants_params);
    let shape = nt_wire::message::StreamShape { chunk: 64, bytes: 1 << 20 };
    assert_eq!((twin.maps[0].stride, twin.maps[0].stream), (16, Some(shape)));
}

#[test]
fn strides_are_computed_from_parameters() {
    let mut params = vec![0; 16];
    params[8..12].copy_from_slice(&(-3i32).to_le_bytes());
    let term = Term { param_offset: 8, size: 4, signed: true, factor: 4 };
    let check = |constant, terms: &[Term], expected: Option<i64>| {
        let number = Linear { constant, terms: terms.to_vec() };
        assert_eq!(number.value(&params), expected.map(|value| value as u64), "{number:?}");
    };
    check(5, &[], Some(5));
    check(5, &[term], Some(-7));
    check(5, &[Term { signed: false, ..term }], Some(5 + 4 * 0xffff_fffd));
    check(0, &[Term { size: 8, ..term }], Some(4 * 0xffff_fffd));
    check(0, &[Term { factor: i64::MIN, ..term }, term], Some(i64::MIN.wrapping_mul(-3).wrapping_sub(12)));
    check(0, &[Term { param_offset: 12, size: 8, ..term }], None);
    check(0, &[Term { param_offset: u32::MAX, ..term }], None);
}

#[test]
fn streams_that_contradict_themselves_are_refused() {
    let text = serde_json::to_string(&with_stream()).unwrap();
    let check = |from: &str, to: &str, expected: &str| {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from}");
        assert_eq!(
            Manifest::parse(changed.as_bytes()),
            Err(Error::Unsound(format!("map `accesses`: {expected}")))
        );
    };
    check(r#""chunk":64"#, r#""chunk":48"#, "chunks of 48 slots");
    check(r#""chunk":64"#, r#""chunk":128"#, "chunks of 128 slots");
    check(r#""chunk":64"#, r#""chunk":8"#, "code 2: an event of 9 slots in chunks of 8");
    check(r#""header":1"#, r#""header":2"#, "a header of 2 slots and 16 bytes in chunks of 64 slots");
    check(r#""unit":"warp""#, r#""unit":"block""#, "a stream that is not of warps, or in columns");
    check(r#""lanes":[2,3]"#, r#""lanes":[3,2]"#, "fields [3, 2] are to have a value a lane");
    check(r#""lanes":[2,3]"#, r#""lanes":[2,4]"#, "fields [2, 4] are to have a value a lane");
    check(r#""told":[0]"#, r#""told":[0,0]"#, "fields [0, 0] are to have its value in the code");
    check(r#""told":[0]"#, r#""told":[0,2]"#, "field 2 has a value a lane, and the code tells it");
    check(r#""told":[0]"#, r#""told":[]"#, "`line` and `(base, code and mask)` lie on each other");
    check(r#""offset":12"#, r#""offset":11"#, "`(base, code and mask)` and `at` lie on each other");
    check(r#""offset":12"#, r#""offset":13"#, "field `at` of 4 bytes at 13 in a record of 16");
    check(
        r#""presence":"mask""#,
        r#""presence":{"byte":{"offset":15}}"#,
        "presence is told twice: by the mask, and otherwise",
    );
    check(
        r#""source":{"field":2}"#,
        r#""source":{"difference":[2,1]}"#,
        "column `addr` is a difference of values a lane",
    );
    check(r#"{"site":1"#, r#"{"site":2"#, "code 0: site 2 of none");
    check(r#"[{"field":0,"value":41}]"#, "[]", "code 0: it does not tell fields [0]");
    check(r#",{"field":3,"form":{"known":4}}"#, "", "code 0: it does not say how to get fields [2, 3]");
    let cannot = |field: &str, ty: &str| format!("code 0: the values of `{field}`, a {ty}, cannot be had so");
    check(r#"{"known":4}"#, r#""stride""#, &cannot("bytes", "u32"));
    check(r#"{"name":"addr","type":"ptr""#, r#"{"name":"addr","type":"u64""#, &cannot("addr", "u64"));
    check(
        r#""param_offset":8"#,
        r#""param_offset":6"#,
        "code 0: a stride is made of 4 bytes at 6 of the parameters, where none is",
    );
    check(
        r#""param_offset":8,"size":4"#,
        r#""param_offset":0,"size":2"#,
        "code 0: a stride is made of 2 bytes at 0 of the parameters, where none is",
    );
    let kernel = |from: &str, to: &str, expected: &str| {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from}");
        assert_eq!(
            Manifest::parse(changed.as_bytes()),
            Err(Error::Unsound(format!("kernel `fill`: {expected}")))
        );
    };
    kernel(
        r#""offset":20,"size":4"#,
        r#""offset":22,"size":4"#,
        "slot of 4 bytes at 22 of a context of 24 bytes",
    );
    kernel(
        r#""offset":20,"size":4"#,
        r#""offset":20,"size":2"#,
        "slot of 2 bytes at 20 of a context of 24 bytes",
    );
    kernel(r#""drops","map":0"#, r#""drops","map":1"#, "the context names map 1, which is no stream");
    kernel(r#"["flat_grid"]"#, r#"["round"]"#, "it assumes `round`, which this version does not know");
}
