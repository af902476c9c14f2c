//! Pins: a kernel that is launched in the place of its original uses the original's variables, not copies of them.
//!
//! ```text
//! before  ld.global.f32 %f1, [lut+16];
//! after   /*nt:7{*/.reg .b64 %nt_g0; { ld.const.b64 %nt_g0, [nt_pin+0]; }/*}nt:7*/
//!         ld.global.f32 %f1, [/*nt:edit 6c7574{*/%nt_g0/*}nt:edit*/+16];
//! ```
//!
//! `nt_pin` is an array of addresses in constant memory, filled when the module is loaded, so that the text holds none.
//! ptxas takes the address of a symbol out of the constant bank too: the machine code is the same but for the bank.
//! Variables of constant memory cannot be pinned, since a register there is an offset into the module's own bank: they
//! are listed, for whoever launches the kernel to copy. What can be neither is refused by name.
//!
//! A module that is woven as a whole takes the place of the original and has no pins.

use crate::place::replacement;
use crate::{Options, Refused};
use nt_diag::{Diagnostic, Span};
use nt_ptx::syntax::{ItemKind, Kind, Module, Operand, OperandKind};
use nt_ptx::{Edits, ModuleInfo, TokenKind, Variable};
use std::collections::BTreeMap;

/// A variable whose address stands in `nt_pin`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// Its name.
    pub symbol: String,
    /// Which word.
    pub index: u32,
}

/// A variable of constant memory, of which the woven module has a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constant {
    /// Its name.
    pub symbol: String,
    /// Bytes it takes.
    pub size: u64,
}

/// The pins of a module.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Pins {
    /// By index.
    symbols: Vec<String>,
    numbers: BTreeMap<String, u32>,
    uses: Vec<Use>,
}

/// A place at which an instruction names a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Use {
    /// The instruction, by its index in [`Module::statements`].
    statement: u32,
    pin: u32,
    /// What is replaced.
    old: Span,
    /// What is added to the variable's address and is part of what is replaced.
    offset: i64,
    /// Is all of `[…]` replaced, and not a name alone?
    is_address: bool,
}

/// All constant memory that a module can declare (PTX ISA 9.0, 5.1.3), and that a word of `nt_pin` takes.
const CONSTANT_BYTES: u64 = 65_536;
const WORD: u64 = 8;

impl Pins {
    /// The pins that a module needs; none unless its kernels run in the place of others.
    ///
    /// # Errors
    /// A variable is used in a way that cannot be pinned.
    pub(crate) fn of(module: &Module<'_>, info: &ModuleInfo<'_>, options: Options) -> Result<Pins, Refused> {
        let mut pins = Pins::default();
        if !options.twin {
            return Ok(pins);
        }
        for function in 0..module.functions.len() {
            pins.find(module, info, function)?;
        }
        Ok(pins)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// Which word of `nt_pin` holds the address of a variable of the module.
    pub(crate) fn number(&self, symbol: &str) -> Option<u32> {
        self.numbers.get(symbol).copied()
    }

    /// By index.
    pub(crate) fn list(&self) -> Vec<Pin> {
        (0..).zip(&self.symbols).map(|(index, symbol)| Pin { symbol: symbol.clone(), index }).collect()
    }

    /// The uses in one function.
    fn find(&mut self, module: &Module<'_>, info: &ModuleInfo<'_>, function: usize) -> Result<(), Refused> {
        let Some(declared) = module.functions.get(function) else { return Ok(()) };
        let known = info.functions.get(function).map_or(&[][..], |known| &known.variables);
        let names_some = known.iter().any(|variable| variable.space == ".global");
        let start = declared.body.as_ref().map_or(0, |body| body.statements.start);
        for (number, statement) in (start..).zip(module.body(declared)) {
            let refused = |at: Span, what: &str| {
                let name = module.at(declared.name);
                let message = format!("`{name}` cannot run beside its original");
                Err(Box::new(Diagnostic::error("pin", at, message).label(what.to_owned())))
            };
            let (span, operands) = match statement.kind {
                Kind::Declaration(space) if matches!(module.at(space), ".global" | ".const") => {
                    return refused(statement.span, "a variable that lives on, declared in a function");
                }
                Kind::Instruction(instruction) if names_some => (instruction.operands, Some(instruction)),
                Kind::Declaration(_) | Kind::Table | Kind::Unknown if names_some => (statement.span, None),
                _ => continue,
            };
            let named: Vec<(Span, usize)> = module
                .code(span)
                .filter(|(kind, _)| *kind == TokenKind::Name)
                .filter_map(|(_, at)| {
                    let index = info.variable(module.at(at))?;
                    let is_global = info.variables.get(index).is_some_and(|v| v.space == ".global");
                    let is_local = info.declared_at(function, at.start, module.at(at)).is_some();
                    (is_global && !is_local).then_some((at, index))
                })
                .collect();
            let Some(&(first, _)) = named.first() else { continue };
            let Some(instruction) = operands else {
                return refused(first, "a variable of the module is named here, which is no instruction");
            };
            let operands = module.operands(&instruction);
            for (at, index) in named {
                if let Some(variable) = info.variables.get(index)
                    && let Some(what) = unshared(module, info, variable)
                {
                    return refused(at, what);
                }
                let operand = operands.iter().find(|operand| operand.span.contains(at));
                let found = operand.and_then(|operand| replaced(module, operand, at));
                let Some((old, offset, is_address)) = found else {
                    return refused(
                        at,
                        "in this place the variable's address cannot be replaced by a register",
                    );
                };
                let pin = self.add(module.at(at));
                self.uses.push(Use { statement: number, pin, old, offset, is_address });
            }
        }
        Ok(())
    }

    fn add(&mut self, symbol: &str) -> u32 {
        if let Some(&known) = self.numbers.get(symbol) {
            return known;
        }
        // A module has far fewer variables than a u32 counts.
        let number = self.symbols.len() as u32;
        self.symbols.push(symbol.to_owned());
        self.numbers.insert(symbol.to_owned(), number);
        number
    }

    /// Do the addresses fit beside the module's own constants?
    pub(crate) fn check_room(&self, constants: &[Constant], at: Span) -> Result<(), Refused> {
        let own: u64 = constants.iter().map(|constant| constant.size).sum();
        let all = own.saturating_add(WORD * self.symbols.len() as u64);
        if self.is_empty() || all <= CONSTANT_BYTES {
            return Ok(());
        }
        let what =
            format!("its constants and the addresses of its variables make {all} bytes of {CONSTANT_BYTES}");
        Err(Box::new(Diagnostic::error("pin", at, "no room in constant memory").label(what)))
    }

    /// Replaces all uses, and declares `nt_pin`; spans are numbered from `next` on.
    pub(crate) fn edit(&self, module: &Module<'_>, prefix: &str, next: u32, edits: &mut Edits) {
        if self.is_empty() {
            return;
        }
        let first = module.items.iter().find(|item| item.kind != ItemKind::Header);
        let count = self.symbols.len();
        let declaration = format!(".const .align 8 .b64 {prefix}pin[{count}];\n");
        edits.insert(first.map_or(0, |item| item.span.start), replacement("", &declaration));
        self.edit_uses(module, prefix, &(0..u32::MAX), next, edits);
    }

    /// Replaces the uses in a range of statements; spans are numbered from `next` on, which is given back.
    pub(crate) fn edit_uses(
        &self,
        module: &Module<'_>,
        prefix: &str,
        within: &std::ops::Range<u32>,
        mut next: u32,
        edits: &mut Edits,
    ) -> u32 {
        let uses = self.uses.iter().enumerate().filter(|(_, one)| within.contains(&one.statement));
        for (register, one) in uses {
            let name = format!("%{prefix}g{register}");
            let number = next;
            next = next.saturating_add(1);
            let word = WORD * u64::from(one.pin);
            let add = match one.offset {
                offset if offset == 0 || one.is_address => String::new(),
                offset => format!(" add.s64 {name}, {name}, {offset};"),
            };
            let load = format!("ld.const.b64 {name}, [{prefix}pin+{word}];{add}");
            let Some((at, _)) = crate::instructions::place(module, one.statement) else { continue };
            edits.insert(at, format!("/*nt:{number}{{*/.reg .b64 {name}; {{ {load} }}/*}}nt:{number}*/"));
            let new = if one.is_address { format!("[{name}+{}]", one.offset) } else { name };
            edits.replace(one.old, replacement(module.at(one.old), &new));
        }
        next
    }

    /// The statements before which spans go.
    pub(crate) fn places(&self, module: &Module<'_>) -> Vec<u32> {
        let next = |one: &Use| crate::instructions::place(module, one.statement).map(|(_, next)| next);
        self.uses.iter().filter_map(next).collect()
    }
}

/// What of an operand goes, where it names a variable at `at`: the bytes, the offset among them, and whether it is a
/// whole address.
fn replaced(module: &Module<'_>, operand: &Operand, at: Span) -> Option<(Span, i64, bool)> {
    match operand.kind {
        OperandKind::Name(name) if name == at && operand.span == at => Some((at, 0, false)),
        OperandKind::Offset(name) if name == at => {
            let rest = module.at(Span::new(at.end, operand.span.end)).trim_start();
            let offset = nt_ptx::constant(rest).filter(|_| !rest.starts_with('['))?;
            Some((operand.span, offset, false))
        }
        OperandKind::Address { base: Some(name), offset } if name == at => {
            // `[lut-4]` and `[lut[1]]` do not stay what they are with a register in the place of the name.
            if offset.is_none_or(|offset| module.at(offset).starts_with('+')) {
                return Some((at, 0, false));
            }
            let displacement = module.address(operand)?.displacement;
            (displacement.unsigned_abs() < 1 << 31).then_some((operand.span, displacement, true))
        }
        _ => None,
    }
}

/// Why a variable's address may not go through `nt_pin`.
fn unshared(module: &Module<'_>, info: &ModuleInfo<'_>, variable: &Variable<'_>) -> Option<&'static str> {
    let item = module.items.get(variable.item as usize).map_or("", |item| module.at(item.span));
    // Up to the initialiser, which may be long.
    let head = item.split('=').next().unwrap_or(item);
    if [".texref", ".samplerref", ".surfref"].iter().any(|ty| head.contains(ty)) {
        return Some("textures and surfaces are bound in the original module alone");
    }
    if head.contains(".managed") {
        return Some("managed variables exist once a module");
    }
    if variable.names.iter().any(|name| info.function(name).is_some()) {
        return Some("it holds addresses of functions, which are the original module's");
    }
    None
}

/// The variables of constant memory that a kernel reaches.
///
/// # Errors
/// How large one is cannot be read.
pub(crate) fn constants(
    module: &Module<'_>,
    info: &ModuleInfo<'_>,
    function: usize,
    options: Options,
) -> Result<Vec<Constant>, Refused> {
    let mut constants = Vec::new();
    if !options.twin {
        return Ok(constants);
    }
    let reach = info.reach(&[function]);
    let variables = reach.variables.iter().filter_map(|&index| info.variables.get(index as usize));
    for variable in variables.filter(|variable| variable.space == ".const") {
        let Some(size) = size(module, variable) else {
            let at = module.items.get(variable.item as usize).map_or(Span::at(0), |item| item.span);
            let message = format!("how large the constant `{}` is cannot be read", variable.name);
            return Err(Box::new(Diagnostic::error("pin", at, message)));
        };
        constants.push(Constant { symbol: variable.name.to_owned(), size });
    }
    Ok(constants)
}

/// Bytes of `.const .align 4 .v2 .f32 a[3][4] = …`.
fn size(module: &Module<'_>, variable: &Variable<'_>) -> Option<u64> {
    let item = module.items.get(variable.item as usize)?;
    let mut tokens = module.code(item.span).peekable();
    let (mut element, mut lanes) = (None, 1);
    for (kind, at) in tokens.by_ref() {
        match (kind, module.at(at)) {
            (TokenKind::Dotted, ".v2") => lanes = 2,
            (TokenKind::Dotted, ".v4") => lanes = 4,
            (TokenKind::Dotted, word) => element = bytes(word).or(element),
            (TokenKind::Name, name) if name == variable.name => break,
            _ => {}
        }
    }
    let mut size = element?.checked_mul(lanes)?;
    while tokens.next_if(|(kind, _)| *kind == TokenKind::OpenBracket).is_some() {
        let (kind, at) = tokens.next()?;
        if kind != TokenKind::Number || tokens.next()?.0 != TokenKind::CloseBracket {
            return None;
        }
        size = size.checked_mul(u64::try_from(nt_ptx::constant(module.at(at))?).ok()?)?;
    }
    Some(size)
}

/// Bytes of a fundamental type (PTX ISA 9.0, 5.2.1).
fn bytes(ty: &str) -> Option<u64> {
    Some(match ty {
        ".b8" | ".u8" | ".s8" => 1,
        ".b16" | ".u16" | ".s16" | ".f16" | ".bf16" => 2,
        ".b32" | ".u32" | ".s32" | ".f32" | ".f16x2" | ".bf16x2" => 4,
        ".b64" | ".u64" | ".s64" | ".f64" => 8,
        ".b128" => 16,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_constants() {
        let text = ".version 8.0\n.target sm_90\n.const .align 4 .b8 a[1024];\n.const .f32 b = 0f00000000, c[2][3];\n\
                    .const .align 16 .v4 .f32 d[2] = {{1.0, 2.0}};\n.const .u64 e[] = {1, 2};\n";
        let (module, mut found) = nt_ptx::parse(text);
        let info = nt_ptx::resolve(&module, &mut found);
        let sizes: Vec<_> = info.variables.iter().map(|v| (v.name, size(&module, v))).collect();
        assert_eq!(sizes, [("a", Some(1024)), ("b", Some(4)), ("c", Some(24)), ("d", Some(32)), ("e", None)]);
    }
}
