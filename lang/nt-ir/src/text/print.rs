//! Program to text.

use crate::program::{
    Column, Config, Inst, Key, Map, MapId, MapKind, Op, Placement, Probe, Program, Source, State, StateId,
    Table, TableId, Tracepoint, Type, ValueId,
};
use nt_diag::Span;
use std::fmt::{self, Write};

/// The text of a program, without places in its source.
pub fn print(program: &Program) -> String {
    render(program, false)
}

/// The text of a program, with the place of each item and instruction that has one.
pub fn print_with_spans(program: &Program) -> String {
    render(program, true)
}

fn render(program: &Program, spans: bool) -> String {
    let mut printer = Printer { out: String::new(), program, spans };
    // Writing to a String cannot fail.
    let _ = printer.program();
    printer.out
}

struct Printer<'p> {
    out: String,
    program: &'p Program,
    spans: bool,
}

impl<'p> Printer<'p> {
    fn program(&mut self) -> fmt::Result {
        let program = self.program;
        writeln!(self.out, "program {}", quote(&program.name))?;
        for limit in &program.limits {
            let crate::program::Limit::LaunchCycles(cycles) = limit;
            writeln!(self.out, "limit launch_cycles {cycles}")?;
        }
        if program.config != Config::default() {
            writeln!(self.out, "config stream {}", program.config.stream)?;
        }
        for map in &program.maps {
            self.map(map)?;
        }
        for table in &program.tables {
            self.table(table)?;
        }
        for state in &program.states {
            self.state(state)?;
        }
        for probe in &program.probes {
            self.probe(probe)?;
        }
        Ok(())
    }

    fn map(&mut self, map: &Map) -> fmt::Result {
        let kind = if map.kind == MapKind::Stream { "stream" } else { "array" };
        write!(self.out, "map {}: {kind}<{}>", map.name, map.unit.word())?;
        if let MapKind::Slots { capacity, policy } = map.kind {
            write!(self.out, "[{capacity}] {}", policy.word())?;
        }
        self.out.push_str(" {");
        for (i, field) in (0..).zip(&map.fields) {
            let comma = if i == 0 { "" } else { "," };
            let (open, close) = if field.lanes { ("lanes<", ">") } else { ("", "") };
            let told = if map.told.contains(&i) { " told" } else { "" };
            write!(self.out, "{comma} {}: {open}{}{close}{told}", field.name, field.ty.word())?;
        }
        self.out.push_str(" }");
        self.end_line(map.span)?;
        if !shows_its_fields(map) {
            self.out.push_str("  show {");
            for (i, column) in map.columns.iter().enumerate() {
                self.out.push_str(if i == 0 { " " } else { ", " });
                self.column(map, column)?;
            }
            self.out.push_str(" }\n");
        }
        Ok(())
    }

    fn table(&mut self, table: &Table) -> fmt::Result {
        write!(self.out, "table @{}: {} {} [", table.name, table.func.word(), table.ty.word())?;
        for (i, key) in table.keys.iter().enumerate() {
            let word = match key {
                Key::Site(key) => key.word(),
                Key::Unit(unit) => unit.word(),
                Key::Bounded(builtin) => builtin.word(),
            };
            write!(self.out, "{}{word}", if i == 0 { "" } else { ", " })?;
        }
        self.out.push(']');
        self.end_line(table.span)
    }

    fn column(&mut self, map: &Map, column: &Column) -> fmt::Result {
        let field = |index: u32| map.fields.get(index as usize).map_or("?", |field| &field.name);
        write!(self.out, "{}: {} = ", column.name, column.ty.word())?;
        match column.source {
            Source::Field(index) => write!(self.out, "{}", field(index)),
            Source::Difference(end, length) => write!(self.out, "{} - {}", field(end), field(length)),
        }
    }

    fn state(&mut self, state: &State) -> fmt::Result {
        write!(self.out, "state {}: {} = ", state.name, state.ty.word())?;
        self.constant(state.ty, state.init)?;
        self.end_line(state.span)
    }

    fn probe(&mut self, probe: &Probe) -> fmt::Result {
        write!(self.out, "probe {}", probe.unit.word())?;
        for (i, point) in probe.points.iter().enumerate() {
            self.out.push_str(if i == 0 { " " } else { ", " });
            self.point(point)?;
        }
        if let Some(ValueId(value)) = probe.predicate {
            write!(self.out, " where %{value}")?;
        }
        self.span(probe.span)?;
        self.out.push_str(" {\n");
        for inst in &probe.code {
            self.inst(probe, inst)?;
        }
        self.out.push_str("}\n");
        Ok(())
    }

    fn point(&mut self, point: &Tracepoint) -> fmt::Result {
        match point {
            Tracepoint::KernelEntry { kernel } => self.kernel(kernel.as_deref(), "entry"),
            Tracepoint::KernelExit { kernel } => self.kernel(kernel.as_deref(), "exit"),
            Tracepoint::Inst { classes, spaces, quals, placement } => {
                write!(self.out, "inst:{}", classes.join("|"))?;
                if !(spaces.is_empty() && quals.is_empty()) {
                    // `*` is any space, so that what follows is no space.
                    let spaces = if spaces.is_empty() { "*".to_owned() } else { spaces.join("|") };
                    write!(self.out, ".{spaces}")?;
                }
                for qual in quals {
                    write!(self.out, ".{}", qual.join("|"))?;
                }
                self.placement(*placement)
            }
            Tracepoint::Ptx { glob, placement } => {
                write!(self.out, "ptx:{}", quote(glob))?;
                self.placement(*placement)
            }
            Tracepoint::Line { file, first, last, placement } => {
                write!(self.out, "line:{}:{first}-{last}", quote(file))?;
                self.placement(*placement)
            }
            Tracepoint::Mark { glob } => write!(self.out, "mark:{}", quote(glob)),
            Tracepoint::FuncEntry { glob } => write!(self.out, "func:{}:entry", quote(glob)),
            Tracepoint::FuncExit { glob } => write!(self.out, "func:{}:exit", quote(glob)),
            Tracepoint::Block { looped } => {
                write!(self.out, "bb:{}", if *looped { "loop" } else { "entry" })
            }
        }
    }

    fn kernel(&mut self, kernel: Option<&str>, event: &str) -> fmt::Result {
        match kernel {
            Some(glob) => write!(self.out, "kernel:{}:{event}", quote(glob)),
            None => write!(self.out, "kernel:{event}"),
        }
    }

    fn placement(&mut self, placement: Placement) -> fmt::Result {
        match placement {
            Placement::Before => Ok(()),
            other => write!(self.out, ":{}", other.word()),
        }
    }

    fn inst(&mut self, probe: &Probe, inst: &Inst) -> fmt::Result {
        self.out.push_str("  ");
        let value = inst.result.and_then(|id| probe.values.get(id.0 as usize));
        if let (Some(ValueId(id)), Some(value)) = (inst.result, value) {
            let uniform = if value.uniform { " uniform" } else { "" };
            write!(self.out, "%{id}: {}{uniform} = ", value.ty.word())?;
        }
        let ty = value.map_or(Type::U64, |value| value.ty);
        match &inst.op {
            Op::Const(bits) => {
                self.out.push_str("const ");
                self.constant(ty, *bits)?;
            }
            Op::Builtin(builtin) => self.out.push_str(builtin.word()),
            Op::ReadState(state) => write!(self.out, "state {}", self.state_name(*state))?,
            Op::Unary(op, a) => self.operation(op.word(), &[*a])?,
            Op::Binary(op, a, b) => self.operation(op.word(), &[*a, *b])?,
            Op::Compare(op, a, b) => self.operation(op.word(), &[*a, *b])?,
            Op::Cast(a) => self.operation("cast", &[*a])?,
            Op::Bits(a) => self.operation("bits", &[*a])?,
            Op::Select(c, a, b) => self.operation("select", &[*c, *a, *b])?,
            Op::Site(value) => write!(self.out, "site {}", value.word())?,
            Op::Operand(operand) => write!(self.out, "operand {operand}")?,
            Op::CastOperand(operand) => write!(self.out, "cast {operand}")?,
            Op::BitsOperand(operand) => write!(self.out, "bits {operand}")?,
            Op::CompareOperands(op, a, b) => write!(self.out, "{} {a}, {b}", op.word())?,
            Op::ClockAfter(builtin, ValueId(a)) => write!(self.out, "{} after %{a}", builtin.word())?,
            Op::ClockAfterOperand(builtin, operand) => {
                write!(self.out, "{} after {operand}", builtin.word())?;
            }
            Op::Has(part) => write!(self.out, "has {}", part.word())?,
            Op::Match { what, glob } => write!(self.out, "match {} {}", what.word(), quote(glob))?,
            Op::Aggregate { table, value } => self.aggregate(*table, *value)?,
            Op::WriteState(state, a) => write!(self.out, "state {} = %{}", self.state_name(*state), a.0)?,
            Op::Save { map, values } => self.save(*map, values)?,
        }
        if let Some(ValueId(guard)) = inst.guard {
            write!(self.out, " if %{guard}")?;
        }
        self.end_line(inst.span)
    }

    fn operation(&mut self, word: &str, operands: &[ValueId]) -> fmt::Result {
        self.out.push_str(word);
        for (i, operand) in operands.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(self.out, "{comma} %{}", operand.0)?;
        }
        Ok(())
    }

    fn save(&mut self, id: MapId, values: &[(u32, ValueId)]) -> fmt::Result {
        let map = self.program.maps.get(id.0 as usize);
        write!(self.out, "save {}(", map.map_or("?", |map| &map.name))?;
        for (i, (field, value)) in values.iter().enumerate() {
            let name = map.and_then(|map| map.fields.get(*field as usize)).map_or("?", |field| &field.name);
            let comma = if i == 0 { "" } else { ", " };
            write!(self.out, "{comma}{name} = %{}", value.0)?;
        }
        self.out.push(')');
        Ok(())
    }

    /// `count @issued`, `sum @bytes(%3)`
    fn aggregate(&mut self, id: TableId, value: Option<ValueId>) -> fmt::Result {
        let table = self.program.tables.get(id.0 as usize);
        let (word, name) = table.map_or(("sum", "?"), |table| (table.func.word(), &table.name));
        write!(self.out, "{word} @{name}")?;
        match value {
            Some(ValueId(value)) => write!(self.out, "(%{value})"),
            None => Ok(()),
        }
    }

    fn state_name(&self, id: StateId) -> &'p str {
        self.program.states.get(id.0 as usize).map_or("?", |state| &state.name)
    }

    fn constant(&mut self, ty: Type, bits: u64) -> fmt::Result {
        match ty {
            Type::Bool => write!(self.out, "{}", if bits == 0 { "false" } else { "true" }),
            Type::F32 | Type::F64 | Type::Ptr => write!(self.out, "{bits:#x}"),
            _ if ty.is_signed() => write!(self.out, "{}", bits as i64),
            _ => write!(self.out, "{bits}"),
        }
    }

    fn end_line(&mut self, span: Span) -> fmt::Result {
        self.span(span)?;
        self.out.push('\n');
        Ok(())
    }

    fn span(&mut self, span: Span) -> fmt::Result {
        if self.spans && span != Span::default() {
            write!(self.out, " !{}:{}", span.start, span.end)?;
        }
        Ok(())
    }
}

/// Is each column the field of its place, unchanged?
fn shows_its_fields(map: &Map) -> bool {
    map.columns.len() == map.fields.len()
        && map.columns.iter().zip(&map.fields).enumerate().all(|(i, (column, field))| {
            column.name == field.name && column.ty == field.ty && column.source == Source::Field(i as u32)
        })
}

/// A name in quotes: `"`, `\` and control characters escaped, so that it stays on its line.
fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{{{:x}}}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
