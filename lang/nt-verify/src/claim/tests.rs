//! Claims that hold together, and what is none.

use super::*;

fn refused(text: &str, message: &str) {
    let error = Claim::parse(text, 100).expect_err("must be refused");
    assert_eq!(error.message, message);
    assert!(error.span.start >= 100 && error.span.end as usize <= 100 + text.len(), "{error:?}");
}

#[test]
fn a_claim_of_two_maps() {
    let text = "/*nt:ctx prefix=nt1_ zero@0:8 launch@8:4 base.a@16:8 cap.a@24:8 stride.a=16 \
                columns.b=8,4,4,1 cap.b@40:8 base.b@32:8*/";
    let claim = Claim::parse(text, 0).expect("is a claim");
    assert_eq!((claim.prefix.as_str(), claim.size), ("nt1_", 48));
    assert_eq!(claim.maps[0], Map { name: "a".into(), shape: Shape::Packed { stride: 16 }, counts: None });
    let Shape::Columns(columns) = &claim.maps[1].shape else { panic!("{claim:?}") };
    // The prefix sums of the widths.
    assert_eq!(
        columns.iter().map(|c| (c.offset, c.width)).collect::<Vec<_>>(),
        [(0, 8), (8, 4), (12, 4), (16, 1)]
    );
    assert_eq!(claim.field_at(40).map(|f| (f.kind, f.size)), Some((FieldKind::Cap(1), 8)));
    assert_eq!(claim.field_at(44), None, "within a field");
    assert_eq!(claim.field_at(12), None, "a gap");
    assert_eq!(claim.field_at(u32::MAX), None);
}

#[test]
fn a_claim_of_tables_and_pins() {
    let text = "/*nt:ctx prefix=nt_ zero@0:8 base.@@8:8 cap.@@16:8 stride.@=8 base.@sync@24:8 cap.@sync@32:8 \
                stride.@sync=24 pin.lut=1 pin._Z3tab$1=0*/";
    let claim = Claim::parse(text, 0).expect("is a claim");
    assert!(claim.maps.iter().all(Map::is_table));
    let names: Vec<_> = claim.maps.iter().map(|map| map.name.as_str()).collect();
    assert_eq!(names, ["@", "@sync"]);
    assert_eq!(claim.maps[1].shape, Shape::Packed { stride: 24 });
    let pins: Vec<_> = claim.pins.iter().map(|pin| (pin.index, pin.symbol.as_str())).collect();
    assert_eq!(pins, [(0, "_Z3tab$1"), (1, "lut")]);
    assert_eq!(claim.size, 40);
}

#[test]
fn what_is_no_table_or_pin() {
    let table = |fields| format!("/*nt:ctx prefix=nt_ base.@t@0:8 cap.@t@8:8 {fields}*/");
    refused(&table("stride.@t=12"), "the stride of table `@t` is not of whole cells of 8 bytes");
    refused(&table("columns.@t=8"), "table `@t` has a stride, not columns");
    refused(&table("base.@@t@16:8"), "`@@t` is no name of a map");
    refused(&table("stride.@4=8"), "`@4` is no name of a map");
    let pins = |fields| format!("/*nt:ctx prefix=nt_ zero@0:8 {fields}*/");
    refused(&pins("pin.a=0 pin.b=0"), "`pin.b` or its number is claimed twice");
    refused(&pins("pin.a=0 pin.a=1"), "`pin.a` or its number is claimed twice");
    refused(&pins("pin.=0"), "`` is no name of a variable");
    refused(&pins("pin._=0"), "`_` is no name of a variable");
    refused(&pins("pin.a.b=0"), "`a.b` is no name of a variable");
    refused(&pins("pin.a=8192"), "`8192` is no number of a pin");
    refused(&pins("pin.a="), "`` is no number of a pin");
}

#[test]
fn the_size_is_rounded_up() {
    let claim = Claim::parse("/*nt:ctx prefix=nt_ launch@0:4*/", 0).expect("is a claim");
    assert_eq!(claim.size, 8);
}

#[test]
fn what_is_no_claim() {
    refused(
        "/*nt:ctx prefix=xy_ zero@0:8*/",
        "expected `prefix=nt_` or `prefix=nt1_` and so on, found `prefix=xy_`",
    );
    refused(
        "/*nt:ctx prefix=nt01_ zero@0:8*/",
        "expected `prefix=nt_` or `prefix=nt1_` and so on, found `prefix=nt01_`",
    );
    refused("/*nt:ctx prefix=nt_*/", "the claim has no field");
    refused("/*nt:ctx prefix=nt_ zero@0:8 zero@8:8*/", "`zero` is claimed twice");
    refused("/*nt:ctx prefix=nt_ zero@4:8*/", "`zero` is not aligned to its 8 bytes");
    refused("/*nt:ctx prefix=nt_ zero@0:4*/", "`zero` cannot have 4 bytes");
    refused("/*nt:ctx prefix=nt_ zero@0:8 launch@4:4*/", "two fields overlap at offset 4");
    refused("/*nt:ctx prefix=nt_  zero@0:8*/", "`` is no field of a claim");
    refused("/*nt:ctx prefix=nt_ zero@99999:8*/", "`zero@99999:8` is no field of a claim");
    refused("/*nt:ctx prefix=nt_ base.a@0:8 stride.a=16*/", "map `a` has no `cap`");
    refused("/*nt:ctx prefix=nt_ base.a@0:8 cap.a@8:8*/", "map `a` has no `stride` and no `columns`");
    refused("/*nt:ctx prefix=nt_ cap.a@8:8 stride.a=16*/", "map `a` has no `base`");
    refused("/*nt:ctx prefix=nt_ base.a@0:8 cap.a@8:8 stride.a=16 columns.a=8*/", "map `a` has two shapes");
    refused("/*nt:ctx prefix=nt_ base.a@0:8 cap.a@8:8 columns.a=8,3*/", "`8,3` is no shape of a map");
    refused("/*nt:ctx prefix=nt_ base.a@0:8 cap.a@8:8 stride.a=0*/", "`0` is no shape of a map");
    refused("/*nt:ctx prefix=nt_ base.4@0:8*/", "`4` is no name of a map");
    refused("/*nt:ctx prefix=nt_ base.a@1:8*/", "`base.a` is not aligned to its 8 bytes");
    refused("/*nt:ctx prefix=nt_ pin.a@0:8*/", "`pin.a@0:8` is no field of a claim");
}

#[test]
fn a_claim_of_a_stream() {
    let text = "/*nt:ctx prefix=nt_ base.ev@0:8 cap.ev@8:4 units.ev@12:4 cursor.ev@16:8 drops.ev@24:8 stride.ev=16 \
                base.m@32:8 cap.m@40:8 stride.m=32*/";
    let claim = Claim::parse(text, 0).expect("is a claim");
    assert_eq!(claim.size, 48);
    assert_eq!(claim.maps[0], Map { name: "ev".into(), shape: Shape::Slots, counts: None });
    assert!(claim.maps[0].is_stream() && !claim.maps[1].is_stream() && !claim.maps[0].is_table());
    let kinds: Vec<_> = claim.fields.iter().map(|field| (field.kind, field.offset, field.size)).collect();
    assert_eq!(
        kinds,
        [
            (FieldKind::Base(0), 0, 8),
            (FieldKind::Cap(0), 8, 4),
            (FieldKind::Units(0), 12, 4),
            (FieldKind::Cursor(0), 16, 8),
            (FieldKind::Drops(0), 24, 8),
            (FieldKind::Base(1), 32, 8),
            (FieldKind::Cap(1), 40, 8),
        ]
    );
}

#[test]
fn what_is_no_stream() {
    let stream = |old: &str, new: &str| {
        let text =
            "/*nt:ctx prefix=nt_ base.s@0:8 cap.s@8:4 units.s@12:4 cursor.s@16:8 drops.s@24:8 stride.s=16*/";
        assert!(text.contains(old), "{old}");
        text.replacen(old, new, 1)
    };
    refused(&stream("cap.s@8:4 ", ""), "map `s` has no `cap`");
    refused(&stream("units.s@12:4 ", ""), "stream `s` has no `units`");
    refused(&stream("cursor.s@16:8 ", ""), "stream `s` has no `cursor`");
    refused(&stream("drops.s@24:8 ", ""), "stream `s` has no `drops`");
    refused(&stream("cap.s@8:4", "cap.s@32:8"), "`cap.s` has 4 bytes, not 8");
    refused(&stream("units.s@12:4", "units.s@32:8"), "`units.s` has 4 bytes, not 8");
    refused(&stream("cursor.s@16:8", "cursor.s@16:4"), "`cursor.s` has 8 bytes, not 4");
    refused(&stream("cursor.s@16:8", "cursor.s@20:8"), "`cursor.s` is not aligned to its 8 bytes");
    refused(&stream("drops.s@24:8", "drops.s@16:8"), "two fields overlap at offset 16");
    refused(&stream("stride.s=16", "stride.s=32"), "`s` is a stream, but has no stride of 16");
    refused(&stream("stride.s=16", "columns.s=16"), "`16` is no shape of a map");
    refused(&stream("stride.s=16", "columns.s=8,8"), "`s` is a stream, but has no stride of 16");
    refused(&stream(" stride.s=16", ""), "map `s` has no `stride` and no `columns`");
    refused(&stream("units.s", "units.@t"), "map `@t` has no `base`");
    refused(&stream("units.s", "unit.s"), "`unit.s@12:4` is no field of a claim");
    refused("/*nt:ctx prefix=nt_ base.a@0:8 cap.a@8:4 stride.a=16*/", "`cap.a` has 8 bytes, not 4");
}

#[test]
fn maps_with_counts() {
    let text = "/*nt:ctx prefix=nt_ base.w@0:8 cap.w@8:8 counts.w@16:8 units.w@24:4 base.t@32:8 cap.t@40:8 units.t@28:4 \
                counts.t@48:8 stride.w=16 columns.t=8,1*/";
    let claim = Claim::parse(text, 0).expect("is a claim");
    assert_eq!(claim.size, 56);
    let columns = vec![Column { offset: 0, width: 8 }, Column { offset: 8, width: 1 }];
    assert_eq!(
        claim.maps,
        [
            Map { name: "w".into(), shape: Shape::Packed { stride: 16 }, counts: Some(8) },
            Map { name: "t".into(), shape: Shape::Columns(columns), counts: Some(4) },
        ]
    );
    let kinds: Vec<_> = claim.fields.iter().map(|field| (field.kind, field.offset, field.size)).collect();
    assert_eq!(
        kinds[2..5],
        [(FieldKind::Counts(0), 16, 8), (FieldKind::Units(0), 24, 4), (FieldKind::Units(1), 28, 4)]
    );
}

#[test]
fn what_is_no_map_with_counts() {
    let array = |old: &str, new: &str| {
        let text = "/*nt:ctx prefix=nt_ base.m@0:8 cap.m@8:8 counts.m@16:8 units.m@24:4 stride.m=16*/";
        assert!(text.contains(old), "{old}");
        text.replacen(old, new, 1)
    };
    refused(&array("cap.m@8:8 ", ""), "map `m` has no `cap`");
    refused(&array(" units.m@24:4", ""), "map with counts `m` has no `units`");
    refused(&array("counts.m@16:8 ", ""), "`cap.m` has 4 bytes, not 8");
    refused(&array("cap.m@8:8", "cap.m@8:4"), "`cap.m` has 8 bytes, not 4");
    refused(&array("counts.m@16:8", "counts.m@16:4"), "`counts.m` has 8 bytes, not 4");
    refused(&array("units.m@24:4", "units.m@24:8"), "`units.m` has 4 bytes, not 8");
    refused(&array("counts.m@16:8", "counts.m@8:8"), "two fields overlap at offset 8");
    refused(&array("units.m@24:4", "units.m@24:4 cursor.m@32:8 drops.m@40:8"), "`cap.m` has 4 bytes, not 8");
    refused(
        "/*nt:ctx prefix=nt_ base.m@0:8 cap.m@8:4 units.m@12:4 cursor.m@16:8 drops.m@24:8 counts.m@32:8 stride.m=16*/",
        "stream `m` has `counts`",
    );
    refused(
        "/*nt:ctx prefix=nt_ base.@m@0:8 cap.@m@8:8 counts.@m@16:8 units.@m@24:4 stride.@m=16*/",
        "table `@m` has `counts`",
    );
}
