//! Between the manifest's own structs, the probe IR and the wire.
//!
//! Every crate keeps its types; this is where a new variant of one must be given a word in the files.

use nt_ir::launch::Conditions;
use nt_ir::layout::SLOT;
use nt_ir::{layout, program};
use nt_wire::message;

use super::{
    Code, Column, Constant, Context, ContextSlot, Field, Fill, Func, Kernel, Key, KeyKind, Map, Param, Pin,
    Presence, Slots, Source, Stream, Table, Type, Unit,
};

macro_rules! same_variants {
    ($theirs:path, $ours:ident: $($variant:ident)*) => {
        impl From<$theirs> for $ours {
            fn from(value: $theirs) -> Self {
                match value { $(<$theirs>::$variant => $ours::$variant,)* }
            }
        }
        impl From<$ours> for $theirs {
            fn from(value: $ours) -> Self {
                match value { $($ours::$variant => <$theirs>::$variant,)* }
            }
        }
    };
}

same_variants!(message::Unit, Unit: Thread Warp Block Sm);
same_variants!(program::Type, Type: U8 U16 U32 U64 S8 S16 S32 S64 F32 F64 Bool Ptr);

/// No program names multiprocessors as a unit, so there is no way back.
impl From<program::Unit> for Unit {
    fn from(unit: program::Unit) -> Self {
        match unit {
            program::Unit::Thread => Unit::Thread,
            program::Unit::Warp => Unit::Warp,
            program::Unit::Block => Unit::Block,
        }
    }
}

impl Type {
    /// Bytes in memory.
    pub fn size(self) -> u32 {
        layout::size(self.into())
    }

    /// Its word in the language and in the files.
    pub fn word(self) -> &'static str {
        match self {
            Type::U8 => "u8",
            Type::U16 => "u16",
            Type::U32 => "u32",
            Type::U64 => "u64",
            Type::S8 => "s8",
            Type::S16 => "s16",
            Type::S32 => "s32",
            Type::S64 => "s64",
            Type::F32 => "f32",
            Type::F64 => "f64",
            Type::Bool => "bool",
            Type::Ptr => "ptr",
        }
    }
}

impl Unit {
    /// Its word in the language and in the files.
    pub fn word(self) -> &'static str {
        match self {
            Unit::Thread => "thread",
            Unit::Warp => "warp",
            Unit::Block => "block",
            Unit::Sm => "sm",
        }
    }

    /// How many units a launch has on a device with `sms` multiprocessors; `None` beyond 64 bits.
    pub fn count(self, grid: [u32; 3], block: [u32; 3], sms: u32) -> Option<u64> {
        message::Unit::from(self).count(grid, block, sms)
    }
}

impl Map {
    /// What a manifest says of a map of the IR that was laid out; of a stream, [`Stream::of`] says the rest.
    pub fn of(map: &program::Map, layout: &layout::Layout) -> Map {
        let fields = map.fields.iter().zip(&layout.slots).map(|(field, slot)| Field {
            name: field.name.clone(),
            ty: field.ty.into(),
            offset: slot.offset,
            // Fields that are not in a record of their own have no place in the layout.
            size: layout::size(field.ty),
        });
        let columns = map.columns.iter().map(|column| Column {
            name: column.name.clone(),
            ty: column.ty.into(),
            source: match column.source {
                program::Source::Field(field) => Source::Field(field),
                program::Source::Difference(a, b) => Source::Difference(a, b),
            },
        });
        Map {
            name: map.name.clone(),
            unit: map.unit.into(),
            columnar: layout.columnar,
            stride: layout.stride,
            fields: fields.collect(),
            presence: match layout.presence {
                layout::Presence::Bit { field, bit } => Presence::Bit { field, bit },
                layout::Presence::Byte(slot) => Presence::Byte { offset: slot.offset },
                layout::Presence::Mask => Presence::Mask,
            },
            columns: columns.collect(),
            stream: None,
            slots: Slots::of(map),
        }
    }
}

impl Table {
    /// What a manifest says of a table of the IR, where the sites of a kernel have `cells`: for each cell of a unit, a
    /// text for every key that the site tells.
    pub fn of(table: &program::Table, cells: Vec<Vec<String>>) -> Table {
        let unit = table.keys.iter().find_map(|key| match *key {
            program::Key::Unit(unit) => Some(unit.into()),
            program::Key::Site(_) | program::Key::Bounded(_) => None,
        });
        let unit: Unit = unit.unwrap_or(Unit::Sm);
        let keys = table.keys.iter().map(|key| match *key {
            program::Key::Site(key) => Key { kind: KeyKind::Site, name: key.word().to_owned() },
            program::Key::Unit(key) => Key { kind: KeyKind::Unit, name: key.word().to_owned() },
            program::Key::Bounded(key) => Key { kind: KeyKind::Cu, name: key.word().to_owned() },
        });
        Table {
            name: table.name.clone(),
            func: match table.func {
                program::Func::Count => Func::Count,
                program::Func::Sum => Func::Sum,
                program::Func::Gone => Func::Gone,
            },
            ty: table.ty.into(),
            unit,
            persistent: unit == Unit::Sm,
            stride: layout::table_stride(&table.keys, cells.len()),
            keys: keys.collect(),
            cells,
        }
    }
}

impl Stream {
    /// What a manifest says of a stream of the IR that a weaver has given chunks of `chunk` slots and these codes, and
    /// that is to get so many bytes a launch.
    pub fn of(
        map: &program::Map,
        layout: layout::StreamLayout,
        chunk: u32,
        bytes: u64,
        codes: Vec<Code>,
    ) -> Stream {
        let lanes = (0u32..).zip(&map.fields).filter(|(_, field)| field.lanes).map(|(index, _)| index);
        let header = layout.header_slots;
        Stream { chunk, header, bytes, lanes: lanes.collect(), told: map.told.clone(), codes }
    }
}

impl Kernel {
    /// What the weaver has relied on of a launch.
    pub fn conditions(&self) -> Conditions {
        let known = self.assumes.iter().filter_map(|name| Conditions::from_name(name));
        known.fold(Conditions::NONE, Conditions::union)
    }

    /// The answer to a hook that needs this kernel: all but the woven module itself, whose size is `size`. `entry` is
    /// [`super::Manifest::entry`] of this kernel.
    pub fn twin(&self, size: u64, entry: Vec<u8>) -> message::Twin {
        message::Twin {
            size,
            params: self.params.iter().copied().map(Into::into).collect(),
            context: self.context.size,
            slots: self.context.slots.iter().copied().map(Into::into).collect(),
            maps: self.maps.iter().map(Into::into).chain(self.tables.iter().map(Into::into)).collect(),
            pins: self.pins.iter().cloned().map(Into::into).collect(),
            constants: self.constants.iter().cloned().map(Into::into).collect(),
            assumes: self.conditions().bits(),
            wants_params: self.maps.iter().filter_map(|map| map.stream.as_ref()).any(Stream::wants_params),
            manifest: entry,
        }
    }
}

impl Context {
    /// The word that a slot of this kind lies in, if there is one.
    pub fn offset_of(&self, fill: Fill) -> Option<u32> {
        self.slots.iter().find(|slot| slot.fill == fill).map(|slot| slot.offset)
    }
}

impl From<Param> for message::Param {
    fn from(param: Param) -> Self {
        message::Param { offset: param.offset, size: param.size }
    }
}

impl From<ContextSlot> for message::Slot {
    fn from(slot: ContextSlot) -> Self {
        let fill = match slot.fill {
            Fill::Zero => message::Fill::Zero,
            Fill::Base { map } => message::Fill::Base(map),
            Fill::Capacity { map } => message::Fill::Capacity(map),
            Fill::Cursor { map } => message::Fill::Cursor(map),
            Fill::Drops { map } => message::Fill::Drops(map),
            Fill::Units { map } => message::Fill::Units(map),
            Fill::Counts { map } => message::Fill::Counts(map),
            Fill::Launch => message::Fill::Launch,
        };
        message::Slot { offset: slot.offset, size: slot.size, fill }
    }
}

impl From<&Map> for message::MapShape {
    fn from(map: &Map) -> Self {
        let unit = map.unit.into();
        match map.stream {
            None => {
                message::MapShape { slots: map.slots_shape(), ..message::MapShape::records(unit, map.stride) }
            }
            Some(Stream { chunk, bytes, .. }) => message::MapShape {
                stream: Some(message::StreamShape { chunk, bytes }),
                ..message::MapShape::records(unit, SLOT)
            },
        }
    }
}

impl From<&Table> for message::MapShape {
    fn from(table: &Table) -> Self {
        let (unit, stride, persistent) = (table.unit.into(), table.stride, table.persistent);
        message::MapShape { persistent, ..message::MapShape::records(unit, stride) }
    }
}

impl From<Pin> for message::Pin {
    fn from(Pin { symbol, index }: Pin) -> Self {
        message::Pin { symbol, index }
    }
}

impl From<Constant> for message::Constant {
    fn from(Constant { symbol, size }: Constant) -> Self {
        message::Constant { symbol, size }
    }
}
