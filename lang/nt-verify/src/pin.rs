//! V16: a pinned variable is the original's own, reached through `nt_pin`, wherever the woven text uses it.
//!
//! ```text
//! /*nt:edit {*/.const .align 8 .b64 nt_pin[2];/*}nt:edit*/
//! …
//! /*nt:7{*/.reg .b64 %nt_g7; { ld.const.b64 %nt_g7, [nt_pin+8]; }/*}nt:7*/
//! @%p1 ld.global.f32 %f1, [/*nt:edit 6c7574{*/%nt_g7/*}nt:edit*/+16];     the symbol is `lut`, and `pin.lut=1`
//! mov.u64 %rd1, /*nt:edit 6c7574{*/%nt_g8/*}nt:edit*/;                    its address itself
//! ```
//!
//! An edit replaces a symbol's name, or a whole address operand, or `lut+4` as a value. What stands there afterwards
//! is a register that a span directly before the instruction declares outside of its braces, and that holds, where
//! that span ends, exactly what was written there before: the address by the symbol's own pin, and the offset.

use crate::claim::{Claim, Pin};
use crate::clone::Cloned;
use crate::head::Kernels;
use crate::judge::Carried;
use crate::lex::{TokenKind, tokens};
use crate::names::identifiers;
use crate::place::is_between_items;
use crate::program::Program;
use crate::undo::{Inserted, Undone};
use crate::{Report, Rule};
use nt_diag::Span;
use nt_ptx::syntax::{Function, Kind, Module, Operand, OperandKind};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The pins of a module, as its kernels claim them.
#[derive(Debug, Default)]
pub(crate) struct Pins<'c> {
    /// `nt_pin`
    name: String,
    by_symbol: BTreeMap<&'c str, u32>,
}

/// What the spans before an instruction hold ready for it: by its index in [`Module::statements`] and by name.
pub(crate) type Ready<'w> = HashMap<(u32, &'w str), Option<(u32, u64)>>;

impl<'c> Pins<'c> {
    /// The pins that all claims together speak of. They must agree, and number the words from 0 on.
    pub(crate) fn of(program: &Program<'_, '_>, kernels: &'c Kernels, report: &mut Report) -> Self {
        let Some(first) = kernels.values().next() else { return Pins::default() };
        let mut pins = Pins { name: format!("{}pin", first.claim.prefix), by_symbol: BTreeMap::new() };
        let mut symbols: BTreeMap<u32, &str> = BTreeMap::new();
        for context in kernels.values() {
            for Pin { index, symbol } in &context.claim.pins {
                let other = *pins.by_symbol.entry(symbol).or_insert(*index);
                let same = *symbols.entry(*index).or_insert(symbol);
                if other != *index || same != symbol {
                    let message =
                        format!("pin {index} of `{symbol}` is another one in another kernel's claim");
                    report.add(Rule::V16, context.span, message);
                }
                if !is_global(program, symbol) {
                    let message = format!("`{symbol}` is pinned, but no `.global` variable of this module");
                    report.add(Rule::V16, context.span, message);
                }
            }
        }
        if let Some(missing) = (0..pins.words()).find(|index| !symbols.contains_key(index))
            && let Some(context) = kernels.values().next()
        {
            report.add(Rule::V16, context.span, format!("no kernel's claim has pin {missing}"));
        }
        pins
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_symbol.is_empty()
    }

    /// How many words `nt_pin` has.
    pub(crate) fn words(&self) -> u32 {
        u32::try_from(self.by_symbol.len()).unwrap_or(u32::MAX)
    }

    /// `nt_pin`, if there is any pin.
    pub(crate) fn name(&self) -> Option<&str> {
        (!self.is_empty()).then_some(self.name.as_str())
    }

    /// Which word holds the address of a variable.
    pub(crate) fn number(&self, symbol: &str) -> Option<u32> {
        self.by_symbol.get(symbol).copied()
    }

    /// The variable whose address a word holds.
    pub(crate) fn symbol(&self, number: u32) -> Option<&'c str> {
        self.by_symbol.iter().find(|(_, of)| **of == number).map(|(symbol, _)| *symbol)
    }

    /// The claim of functions that kernels call: they have no context, but pins and the prefix.
    pub(crate) fn claim_of_functions(kernels: &Kernels) -> Option<Claim> {
        let prefix = kernels.values().next()?.claim.prefix.clone();
        let (fields, maps, pins, states) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Some(Claim { prefix, fields, maps, pins, states, size: 0 })
    }

    /// Checks the edits that are neither of the header nor of a parameter list: `nt_pin` itself, and the operands.
    pub(crate) fn edits(
        &self,
        program: &Program<'_, '_>,
        woven: &str,
        undone: &Undone,
        edits: &[Inserted],
        ready: &Ready<'_>,
        report: &mut Report,
    ) {
        let module = program.module;
        let mut declared = None;
        // What the edits replaced, in the original.
        let mut replaced: HashSet<u32> = HashSet::new();
        for edit in edits {
            if self.is_empty() {
                let message = "an edit that is neither of `.version` nor of a kernel's parameters";
                report.add(Rule::V1, edit.whole, message);
                continue;
            }
            let refused = match function_at(module, edit.old.start) {
                None => match self.declaration(module, woven, edit) {
                    Ok(()) if declared.replace(edit.whole).is_none() => continue,
                    Ok(()) => format!("a second `{}`", self.name),
                    Err(message) => message,
                },
                Some(function) => match self.operand(program, function, woven, edit, ready) {
                    Ok(symbol) => {
                        replaced.insert(symbol.start);
                        continue;
                    }
                    Err(message) => message,
                },
            };
            report.add(Rule::V16, edit.whole, refused);
        }
        if self.is_empty() {
            return;
        }
        if declared.is_none() {
            report.add(
                Rule::V16,
                Span::at(0),
                format!("`{}` is not declared, but claims speak of pins", self.name),
            );
        }
        let woven = |at: Span| undone.woven(at);
        module.functions.iter().for_each(|function| self.missed(module, function, &woven, &replaced, report));
    }

    /// Checks the edits within a clone of a function that are neither of its head nor of calls.
    pub(crate) fn edits_of_clone(
        &self,
        program: &Program<'_, '_>,
        woven: &str,
        (clone, edits): (&Cloned, &[Inserted]),
        ready: &Ready<'_>,
        report: &mut Report,
    ) {
        let Some(function) = program.module.functions.get(clone.function) else { return };
        let mut replaced: HashSet<u32> = HashSet::new();
        for edit in edits {
            match self.operand(program, (clone.function, function), woven, edit, ready) {
                Ok(symbol) => _ = replaced.insert(symbol.start),
                Err(message) => report.add(Rule::V16, edit.whole, message),
            }
        }
        if !self.is_empty() {
            let woven = |_: Span| clone.whole;
            self.missed(program.module, function, &woven, &replaced, report);
        }
    }

    /// The declaration, between two items of the module.
    fn declaration(&self, module: &Module<'_>, woven: &str, edit: &Inserted) -> Result<(), String> {
        if !edit.old.is_empty() || !is_between_items(module, edit.old.start) {
            return Err(format!("an edit that is no declaration of `{}` between two items", self.name));
        }
        let size = self.words().to_string();
        let wanted = [".const", ".align", "8", ".b64", self.name.as_str(), "[", size.as_str(), "]", ";"];
        match tokens(edit.inner.of(woven), edit.inner.start) {
            Ok(found) if found.iter().map(|token| token.text).eq(wanted) => Ok(()),
            _ => {
                Err(format!("expected `.const .align 8 .b64 {}[{size}];` here, and nothing else", self.name))
            }
        }
    }

    /// An operand of an instruction. Gives the replaced symbol's place in the original.
    fn operand(
        &self,
        program: &Program<'_, '_>,
        (index, function): (usize, &Function),
        woven: &str,
        edit: &Inserted,
        ready: &Ready<'_>,
    ) -> Result<Span, String> {
        let no_operand =
            || "an edit in a body that is not of an operand that names a pinned variable".to_owned();
        let module = program.module;
        let all = module.body(function);
        let place = all.partition_point(|statement| statement.span.end <= edit.old.start);
        let statement = all.get(place).filter(|s| s.span.contains(edit.old)).ok_or_else(no_operand)?;
        let Kind::Instruction(instruction) = statement.kind else { return Err(no_operand()) };
        let operands = module.operands(&instruction);
        let found = operands.iter().find(|operand| operand.span.contains(edit.old) && !edit.old.is_empty());
        let old = found.and_then(|operand| Old::read(module, operand, edit.old)).ok_or_else(no_operand)?;

        let symbol = module.at(old.symbol);
        let is_local = program.info().declared_at(index, statement.span.start, symbol).is_some();
        let Some(pin) = self.number(symbol).filter(|_| !is_local) else {
            return Err(format!("`{symbol}` is no pinned variable here"));
        };
        let new =
            New::read(edit.inner.of(woven), edit.inner.start).filter(|new| new.is_address == old.is_address);
        let Some(new) = new else {
            let what = if old.is_address { "an address, `[register+offset]`" } else { "a register" };
            return Err(format!("what stands for `{symbol}` is not {what}"));
        };
        let first = function.body.as_ref().map_or(0, |body| body.statements.start);
        let number = first + u32::try_from(place).unwrap_or(u32::MAX - first);
        let name = new.register;
        match ready.get(&(number, name)) {
            None => Err(format!("no span directly before this instruction declares `{name}` for it")),
            Some(Some((held, more)))
                if *held == pin && more.wrapping_add(new.offset as u64) == old.offset as u64 =>
            {
                Ok(old.symbol)
            }
            Some(_) => {
                Err(format!("`{name}` does not hold what `{symbol}` was here: pin {pin} and the offset"))
            }
        }
    }

    /// What still names a pinned variable in a body is another variable than the original's.
    fn missed(
        &self,
        module: &Module<'_>,
        function: &Function,
        woven: &dyn Fn(Span) -> Span,
        replaced: &HashSet<u32>,
        report: &mut Report,
    ) {
        for statement in module.body(function) {
            let span = match statement.kind {
                Kind::Instruction(instruction) => instruction.operands,
                Kind::Table | Kind::Unknown => statement.span,
                _ => continue,
            };
            identifiers(module.at(span), |at, name| {
                let here = Span::new(span.start + at as u32, span.start + (at + name.len()) as u32);
                if self.by_symbol.contains_key(name) && !replaced.contains(&here.start) {
                    let message = format!("`{name}` is pinned, but used here without its pin");
                    report.add(Rule::V16, woven(here), message);
                }
            });
        }
    }
}

/// Notes what a span declares for the instruction behind it.
pub(crate) fn carry<'w>(
    carried: &[Carried<'w>],
    instruction: Option<u32>,
    names: &mut HashSet<&'w str>,
    ready: &mut Ready<'w>,
    report: &mut Report,
) {
    for register in carried {
        if !names.insert(register.name) {
            report.add(
                Rule::V4,
                register.span,
                format!("`{}` is declared already in this function", register.name),
            );
        } else if let Some(instruction) = instruction {
            ready.insert((instruction, register.name), register.pin);
        }
    }
}

/// What an operand was.
struct Old {
    symbol: Span,
    /// What is added to the symbol's address and is part of the replaced text; 0 if the text keeps it.
    offset: i64,
    /// Is the whole of `[…]` replaced?
    is_address: bool,
}

impl Old {
    fn read(module: &Module<'_>, operand: &Operand, old: Span) -> Option<Old> {
        match operand.kind {
            OperandKind::Name(symbol) if old == symbol && old == operand.span => {
                Some(Old { symbol, offset: 0, is_address: false })
            }
            OperandKind::Offset(symbol) if old == operand.span => {
                let rest = module.at(Span::new(symbol.end, old.end)).trim_start();
                let offset = nt_ptx::constant(rest).filter(|_| !rest.starts_with('['))?;
                Some(Old { symbol, offset, is_address: false })
            }
            OperandKind::Address { base: Some(symbol), offset } if old == symbol => {
                // `[%r-4]` is not what `[lut-4]` is, and `[lut[4]]` is nothing that is known here.
                let plain = offset.is_none_or(|offset| module.at(offset).starts_with('+'));
                plain.then_some(Old { symbol, offset: 0, is_address: false })
            }
            OperandKind::Address { base: Some(symbol), .. } if old == operand.span => {
                let address = module.address(operand)?;
                Some(Old { symbol, offset: address.displacement, is_address: true })
            }
            _ => None,
        }
    }
}

/// What stands for it.
struct New<'w> {
    register: &'w str,
    offset: i64,
    is_address: bool,
}

impl<'w> New<'w> {
    /// `%nt_g`, `[%nt_g]`, `[%nt_g+4]` or `[%nt_g+-4]`.
    fn read(text: &'w str, at: u32) -> Option<New<'w>> {
        let found = tokens(text, at).ok()?;
        let parts: Vec<(TokenKind, &str)> = found.iter().map(|token| (token.kind, token.text)).collect();
        let register = |kind: TokenKind, name: &'w str| {
            (kind == TokenKind::Name && name.starts_with('%') && !name.contains('.')).then_some(name)
        };
        match parts.as_slice() {
            [(kind, name)] => Some(New { register: register(*kind, name)?, offset: 0, is_address: false }),
            [(_, "["), (kind, name), rest @ .., (_, "]")] => {
                let offset = match rest {
                    [] => 0,
                    [(_, "+"), (TokenKind::Number, digits)] => decimal(digits)?,
                    [(_, "+"), (_, "-"), (TokenKind::Number, digits)] => -decimal(digits)?,
                    _ => return None,
                };
                Some(New { register: register(*kind, name)?, offset, is_address: true })
            }
            _ => None,
        }
    }
}

/// A decimal number without leading zeros below 2^31.
fn decimal(text: &str) -> Option<i64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|&n: &i64| plain && n < 1 << 31)
}

/// Is that a `.global` variable, and no reference to a texture?
fn is_global(program: &Program<'_, '_>, symbol: &str) -> bool {
    let (module, info) = (program.module, program.info());
    let Some(variable) = info.variable(symbol).and_then(|index| info.variables.get(index)) else {
        return false;
    };
    let item = module.items.get(variable.item as usize).map_or("", |item| module.at(item.span));
    // Up to the initialiser, which may be long.
    let head = item.split('=').next().unwrap_or(item);
    variable.space == ".global" && ![".texref", ".samplerref", ".surfref"].iter().any(|ty| head.contains(ty))
}

/// The function in whose body a place is.
pub(crate) fn function_at<'m>(module: &'m Module<'_>, at: u32) -> Option<(usize, &'m Function)> {
    let before = module.functions.partition_point(|function| function.span.start <= at);
    let index = before.checked_sub(1)?;
    let function = module.functions.get(index)?;
    let body = function.body.as_ref()?;
    (body.span.start < at && at < body.span.end).then_some((index, function))
}
