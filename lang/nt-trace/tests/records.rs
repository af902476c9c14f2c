//! Records as rows and columns: offsets and values computed by hand.

#![allow(clippy::unwrap_used, reason = "a test stops at the first thing that is wrong")]

use nt_trace::ntm::{Column, Field, Map, Presence, Source, Type, Unit};
use nt_trace::ntt::{Records, Value};

fn field(name: &str, ty: Type, offset: u32) -> Field {
    Field { name: name.to_owned(), ty, offset, size: ty.size() }
}

fn column(name: &str, ty: Type, source: Source) -> Column {
    Column { name: name.to_owned(), ty, source }
}

fn block_sched() -> Map {
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

#[test]
fn packed_records() {
    let mut data = vec![0; 16 * 16];
    // Unit 1: end 0x1_0000_0005, elapsed 6, cu 131. Unit 3: end 0, elapsed 1: the start wraps.
    data[16..32].copy_from_slice(&[5, 0, 0, 0, 1, 0, 0, 0, 6, 0, 0, 0, 131, 0, 0, 0x80]);
    data[48..64].copy_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x80]);
    let table = Records::new(&block_sched(), 4, 16, &data).unwrap();
    let mut rows = table.rows();
    let row = rows.next().unwrap();
    assert_eq!(row.unit(), 1);
    assert_eq!(
        row.values().collect::<Vec<_>>(),
        [Value::Unsigned(0xffff_ffff), Value::Unsigned(6), Value::Unsigned(131)]
    );
    assert_eq!((row.unsigned(2), row.value(3)), (Some(131), None));
    assert_eq!(rows.next().unwrap().unsigned(0), Some(u64::MAX));
    assert!(rows.next().is_none());
    assert_eq!((rows.absent(), table.dropped(), table.units()), (2, 0, 4));
    assert!(table.row(0).is_none() && table.row(4).is_none() && table.row(u64::MAX).is_none());
}

/// Every type, as a structure of arrays of 16 units; unit `n` is written if `n` is even.
#[test]
fn columns_of_every_type() {
    let types = [
        Type::U64,
        Type::S64,
        Type::F64,
        Type::Ptr,
        Type::U32,
        Type::S32,
        Type::F32,
        Type::U16,
        Type::S16,
        Type::U8,
        Type::S8,
        Type::Bool,
    ];
    let mut fields = Vec::new();
    let mut offset = 0;
    for ty in types {
        fields.push(field(ty.word(), ty, offset));
        offset += ty.size();
    }
    assert_eq!(offset, 4 * 8 + 3 * 4 + 2 * 2 + 3);
    let columns =
        types.iter().enumerate().map(|(i, &ty)| column(ty.word(), ty, Source::Field(i as u32))).collect();
    let presence = Presence::Byte { offset };
    let map = Map {
        name: "all".to_owned(),
        unit: Unit::Thread,
        columnar: true,
        stride: offset + 1,
        fields,
        presence,
        columns,
        stream: None,
        slots: None,
    };

    let (capacity, units) = (16u32, 10u64);
    let mut data = vec![0u8; (map.stride * capacity) as usize];
    let mut put = |offset: u32, n: u32, bytes: &[u8]| {
        let at = (offset * capacity) as usize + n as usize * bytes.len();
        data[at..at + bytes.len()].copy_from_slice(bytes);
    };
    for n in (0..10u32).step_by(2) {
        let signed = -(n as i32) - 1;
        put(0, n, &(u64::MAX - u64::from(n)).to_le_bytes());
        put(8, n, &i64::from(signed).to_le_bytes());
        put(16, n, &(f64::from(n) + 0.5).to_le_bytes());
        put(24, n, &(0x7f00_0000_0000 + u64::from(n)).to_le_bytes());
        put(32, n, &(u32::MAX - n).to_le_bytes());
        put(36, n, &signed.to_le_bytes());
        put(40, n, &(n as f32 - 0.25).to_le_bytes());
        put(44, n, &(u16::MAX - n as u16).to_le_bytes());
        put(46, n, &(signed as i16).to_le_bytes());
        put(48, n, &[255 - n as u8]);
        put(49, n, &[signed as i8 as u8]);
        put(50, n, &[u8::from(n % 4 == 0)]);
        put(51, n, &[1]);
    }
    let table = Records::new(&map, units, u64::from(capacity), &data).unwrap();
    let rows: Vec<_> = table.rows().collect();
    assert_eq!(rows.iter().map(nt_trace::ntt::Row::unit).collect::<Vec<_>>(), [0, 2, 4, 6, 8]);
    assert_eq!(
        rows[1].values().collect::<Vec<_>>(),
        [
            Value::Unsigned(u64::MAX - 2),
            Value::Signed(-3),
            Value::Double(2.5),
            Value::Address(0x7f00_0000_0002),
            Value::Unsigned(0xffff_fffd),
            Value::Signed(-3),
            Value::Single(1.75),
            Value::Unsigned(0xfffd),
            Value::Signed(-3),
            Value::Unsigned(0xfd),
            Value::Signed(-3),
            Value::Bool(false),
        ]
    );
    assert_eq!(rows[2].value(11), Some(Value::Bool(true)));
}

#[test]
fn columns_are_wider_than_what_is_stored() {
    let map = Map {
        name: "m".to_owned(),
        unit: Unit::Block,
        columnar: false,
        stride: 16,
        fields: vec![field("x", Type::S8, 0), field("y", Type::F32, 4), field("flag", Type::U8, 8)],
        presence: Presence::Bit { field: 2, bit: 0 },
        columns: vec![
            column("x", Type::S64, Source::Field(0)),
            column("low", Type::U16, Source::Field(0)),
            column("y", Type::F64, Source::Field(1)),
            column("flag", Type::U8, Source::Field(2)),
        ],
        stream: None,
        slots: None,
    };
    let mut data = [0; 16];
    data[0] = 0xfe;
    data[4..8].copy_from_slice(&1.5f32.to_le_bytes());
    data[8] = 0b111;
    let table = Records::new(&map, 1, 1, &data).unwrap();
    let values: Vec<_> = table.row(0).unwrap().values().collect();
    // −2; its low 16 bits; the float; the field without the bit that tells presence.
    assert_eq!(
        values,
        [Value::Signed(-2), Value::Unsigned(0xfffe), Value::Double(1.5), Value::Unsigned(0b110)]
    );
}

#[test]
fn units_beyond_the_room_are_dropped_and_counted() {
    let mut data = vec![0; 16 * 16];
    (0..16).for_each(|n| data[n * 16 + 15] = 0x80);
    let table = Records::new(&block_sched(), 20, 16, &data).unwrap();
    assert_eq!((table.rows().count(), table.dropped()), (16, 4));
}

#[test]
fn data_that_is_too_short_is_refused() {
    let data = [0; 64];
    let check = |map: &Map, units: u64, capacity: u64, fits: bool| {
        assert_eq!(Records::new(map, units, capacity, &data).is_ok(), fits, "{units} of {capacity}");
    };
    let packed = block_sched();
    let columnar = Map { columnar: true, ..block_sched() };
    check(&packed, 4, 16, true);
    check(&packed, 5, 16, false);
    check(&packed, u64::MAX, u64::MAX, false);
    check(&packed, 1 << 60, 1 << 60, false);
    // Columns are as long as the room, so all of it must be there.
    check(&columnar, 1, 4, true);
    check(&columnar, 1, 5, false);
    check(&columnar, 0, u64::MAX, false);
    check(&Map { stride: 0, ..block_sched() }, 1, 1, false);
    // A map that nobody checked: fields and indices that lead nowhere.
    let wild = Map {
        fields: vec![field("x", Type::U64, u32::MAX)],
        presence: Presence::Byte { offset: 0 },
        ..block_sched()
    };
    assert!(Records::new(&wild, 4, 4, &data).is_err(), "a column of field 2 of one");
    let wild = Map { columns: vec![column("x", Type::U64, Source::Field(0))], ..wild };
    let table = Records::new(&wild, 4, 4, &data).unwrap();
    assert_eq!(table.rows().count(), 0);
}

#[test]
fn an_empty_launch() {
    assert_eq!(Records::new(&block_sched(), 0, 0, &[]).unwrap().rows().count(), 0);
}
