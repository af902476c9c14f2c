//! Where everything lies: registers in slots, variables in their spaces, parameters in frames.
//!
//! * Global and constant variables of a module make up a segment each, which the launcher places.
//! * Shared variables of the module and of functions come first, those of an entry behind them; entries overlap.
//!   Dynamic shared memory follows what its kernel has.
//! * A frame in local memory holds what a function returns, its parameters, its `.local` variables, and the `.param`
//!   variables in which it makes up the arguments of calls.

use super::declare::{Declaration, Reference, declarations, initial};
use super::line::{Decoded, missing};
use crate::code::{Src, frame};
use crate::types::Type;
use nt_diag::{Diagnostic, Found, Span};
use nt_ptx::ModuleInfo;
use nt_ptx::syntax::{Function, ItemKind, Kind, Module};
use std::collections::HashMap;

/// Parts of the generic address space. They lie above what a process of x86-64 can have mapped, so that host addresses
/// can serve as global ones, and fit the 48 bits that traces keep of an address.
pub(crate) mod window {
    pub(crate) const SHARED: u64 = 0x8000_0000_0000;
    pub(crate) const LOCAL: u64 = 0x9000_0000_0000;
    pub(crate) const PARAM: u64 = 0xa000_0000_0000;
    pub(crate) const CONST: u64 = 0xb000_0000_0000;
    /// Functions; bits 20 to 35 tell modules apart.
    pub(crate) const CODE: u64 = 0xc000_0000_0000;
    /// Bytes of each but the last.
    pub(crate) const SIZE: u64 = 1 << 32;
}

/// The most that a frame may take of local memory.
pub(crate) const MOST_FRAME: u64 = 512 * 1024;

/// What a symbol stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Where {
    /// Offset in the module's global variables.
    Global(u64),
    /// Offset in its constants, which is the address there.
    Const(u64),
    Shared(u64),
    /// `.extern .shared a[];`
    Dynamic,
    /// A `.local` variable, by its offset in the frame.
    Local(u32),
    /// A `.param` of a function, or of a call that it makes, likewise.
    Argument(u32),
    /// A parameter of a kernel.
    KernelParam(u32),
    /// The address of a function.
    Code(u64),
    /// Something that has no address here.
    Nowhere,
}

impl Where {
    /// The address as a value of the symbol's own space.
    pub(crate) fn address(self) -> Decoded<Src> {
        Ok(match self {
            Where::Global(offset) => Src::Global(offset),
            Where::Const(at) | Where::Shared(at) | Where::Code(at) => Src::Immediate(at),
            Where::KernelParam(offset) => Src::Immediate(u64::from(offset)),
            Where::Dynamic => Src::Dynamic(0),
            Where::Local(offset) | Where::Argument(offset) => Src::Frame(offset),
            Where::Nowhere => return missing("a texture, a surface or a variable of another module"),
        })
    }
}

/// Global or constant variables of a program, to be placed by whoever launches it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Segment {
    /// Bytes of all variables together.
    pub size: u64,
    /// What its address must be a multiple of.
    pub align: u64,
    /// The variables, by offset.
    pub variables: Vec<Variable>,
    /// What is not zero at first.
    pub(crate) content: Vec<(u64, Vec<u8>)>,
    pub(crate) fixups: Vec<Fixup>,
}

/// A global or constant variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Where in the segment.
    pub offset: u64,
    /// How many bytes.
    pub size: u64,
}

/// An address that is part of an initial value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fixup {
    pub(crate) offset: u64,
    pub(crate) bytes: usize,
    pub(crate) to: Where,
    pub(crate) addend: i64,
    pub(crate) is_generic: bool,
}

impl Segment {
    fn add(&mut self, declaration: &Declaration<'_>) -> Option<u64> {
        let offset = declaration.place(self.size);
        let size = declaration.bytes()?;
        self.size = offset.checked_add(size)?;
        // CUDA's allocations are aligned to 256 bytes, which is enough for all but what asks for more.
        self.align = self.align.max(declaration.align).max(256);
        self.variables.push(Variable { name: declaration.name.to_owned(), offset, size });
        Some(offset)
    }
}

/// A parameter or return value of a function, in its frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
}

/// The frame of a function.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) slots: u32,
    /// Bytes in local memory.
    pub(crate) bytes: u64,
    pub(crate) returns: Vec<Slice>,
    pub(crate) params: Vec<Slice>,
    /// Shared memory up to here belongs to the kernel.
    pub(crate) shared: u64,
}

/// The layout of a module, and of the function being decoded.
pub(crate) struct Layout<'s> {
    pub(crate) module: &'s Module<'s>,
    pub(crate) info: &'s ModuleInfo<'s>,
    pub(crate) globals: Segment,
    pub(crate) constants: Segment,
    /// Alignment of dynamic shared memory.
    pub(crate) dynamic_align: u64,
    pub(crate) frame: Frame,
    tag: u64,
    /// Module-level variables by name.
    placed: HashMap<&'s str, Where>,
    /// Shared memory of the module and of functions ends here.
    common: u64,
    /// Variables and parameters of functions, by where their name is declared.
    local: HashMap<u32, Where>,
    /// Registers: where declared, the number of a range, the field of a vector.
    registers: HashMap<(u32, u64, u8), u32>,
    references: Vec<(bool, u64, Reference<'s>)>,
}

impl<'s> Layout<'s> {
    /// Places all variables but those of entries.
    pub(crate) fn new(module: &'s Module<'s>, info: &'s ModuleInfo<'s>, tag: u64, found: &mut Found) -> Self {
        let mut layout = Layout {
            module,
            info,
            globals: Segment::default(),
            constants: Segment::default(),
            dynamic_align: 16,
            frame: Frame::default(),
            tag,
            placed: HashMap::new(),
            common: 0,
            local: HashMap::new(),
            registers: HashMap::new(),
            references: Vec::new(),
        };
        for item in &module.items {
            if matches!(item.kind, ItemKind::Variable { .. }) {
                for declaration in declarations(module, item.span, false) {
                    let at = layout.variable(&declaration, true, found);
                    layout.placed.entry(declaration.name).or_insert(at);
                }
            }
        }
        for function in module.functions.iter().filter(|function| !function.is_entry) {
            layout.body_variables(function, ".shared", found);
        }
        layout.references(found);
        layout
    }

    /// Places one variable of the module, or a `.shared`, `.global` or `.const` one of a body.
    fn variable(&mut self, declaration: &Declaration<'s>, is_common: bool, found: &mut Found) -> Where {
        let too_large = |found: &mut Found| {
            let d = format!("the variable `{}` is too large", declaration.name);
            found.push(Diagnostic::error("too-large", declaration.at, d));
            Where::Nowhere
        };
        match declaration.space {
            ".shared" if declaration.is_extern || declaration.bytes() == Some(0) => {
                self.dynamic_align = self.dynamic_align.max(declaration.align.min(1024));
                Where::Dynamic
            }
            ".shared" => {
                let end = if is_common { self.common } else { self.frame.shared };
                let at = declaration.place(end);
                let Some(next) = declaration.bytes().and_then(|bytes| at.checked_add(bytes)) else {
                    return too_large(found);
                };
                if is_common {
                    self.common = next;
                } else {
                    self.frame.shared = next;
                }
                Where::Shared(at)
            }
            // ptxas makes a definition of it; whose variable is meant is for a linker to say.
            ".global" | ".const" if declaration.is_extern => Where::Nowhere,
            space @ (".global" | ".const") if declaration.ty.is_some() => {
                let is_global = space == ".global";
                let segment = if is_global { &mut self.globals } else { &mut self.constants };
                let Some(at) = segment.add(declaration) else {
                    return too_large(found);
                };
                match initial(self.module, declaration) {
                    Ok((content, references)) => {
                        if !content.is_empty() {
                            segment.content.push((at, content));
                        }
                        self.references.extend(references.into_iter().map(|r| (is_global, at, r)));
                    }
                    Err(why) => found.push(Diagnostic::error("initial-value", declaration.at, why.0)),
                }
                if is_global { Where::Global(at) } else { Where::Const(at) }
            }
            _ => Where::Nowhere,
        }
    }

    /// Addresses in initial values can be told once everything has its place.
    fn references(&mut self, found: &mut Found) {
        for (is_global, start, reference) in std::mem::take(&mut self.references) {
            let Some(to) = self.module_symbol(reference.name) else {
                let d = format!("an initial value names `{}`, which is nowhere", reference.name);
                found.push(Diagnostic::error("initial-value", Span::at(0), d));
                continue;
            };
            let Reference { offset, bytes, addend, is_generic, .. } = reference;
            let segment = if is_global { &mut self.globals } else { &mut self.constants };
            segment.fixups.push(Fixup { offset: start + offset, bytes, to, addend, is_generic });
        }
    }

    fn body_variables(&mut self, function: &Function, only: &str, found: &mut Found) {
        for statement in self.module.body(function) {
            let Kind::Declaration(space) = statement.kind else {
                continue;
            };
            if self.module.at(space) == only {
                for declaration in declarations(self.module, statement.span, false) {
                    let at = self.variable(&declaration, !function.is_entry, found);
                    self.local.insert(declaration.at.start, at);
                }
            }
        }
    }

    /// The frame of a function without its registers: what callers must know.
    pub(crate) fn signature(&mut self, function: &Function) -> Frame {
        let mut frame = Frame { slots: frame::FIRST, shared: self.common, ..Frame::default() };
        if function.is_entry {
            for param in &function.params {
                self.local.insert(param.name.start, Where::KernelParam(param.offset));
            }
            return frame;
        }
        for (list, is_return) in [(function.returns, true), (function.list, false)] {
            let Some(list) = list else {
                continue;
            };
            for declaration in declarations(self.module, Span::new(list.start + 1, list.end - 1), true) {
                let slice = self.argument(&declaration, &mut frame.bytes);
                if is_return {
                    frame.returns.push(slice);
                } else {
                    frame.params.push(slice);
                }
            }
        }
        frame
    }

    fn argument(&mut self, declaration: &Declaration<'s>, end: &mut u64) -> Slice {
        let (at, bytes) = (declaration.place(*end), declaration.bytes().unwrap_or(0));
        *end = at.saturating_add(bytes);
        // Frames are held below `MOST_FRAME` before anything runs in them.
        let slice = Slice { offset: at as u32, bytes: bytes as u32 };
        self.local.insert(declaration.at.start, Where::Argument(slice.offset));
        slice
    }

    /// Begins a function: places its variables.
    pub(crate) fn begin(&mut self, function: &Function, signature: Frame, found: &mut Found) {
        self.frame = signature;
        self.registers.clear();
        if function.is_entry {
            self.body_variables(function, ".shared", found);
        }
        for statement in self.module.body(function) {
            let Kind::Declaration(space) = statement.kind else {
                continue;
            };
            let space = self.module.at(space);
            if !matches!(space, ".local" | ".param") {
                continue;
            }
            for declaration in declarations(self.module, statement.span, false) {
                let mut end = self.frame.bytes;
                let slice = self.argument(&declaration, &mut end);
                self.frame.bytes = end;
                if space == ".local" {
                    self.local.insert(declaration.at.start, Where::Local(slice.offset));
                }
            }
        }
        self.body_variables(function, ".global", found);
        self.body_variables(function, ".const", found);
        self.references(found);
        if self.frame.bytes > MOST_FRAME {
            let d = format!("a frame of {} bytes of local memory", self.frame.bytes);
            found.push(Diagnostic::error("too-large", function.name, d));
        }
    }

    /// The slot and type of a register; fields of vectors (`%v.x`) are registers of their own.
    pub(crate) fn register(&mut self, function: usize, at: u32, name: &str) -> Option<(u32, Type)> {
        let (stem, field) = match name.split_once('.') {
            Some((stem, "x" | "r")) => (stem, 0),
            Some((stem, "y" | "g")) => (stem, 1),
            Some((stem, "z" | "b")) => (stem, 2),
            Some((stem, "w" | "a")) => (stem, 3),
            Some(_) => return None,
            None => (name, 0),
        };
        let declared = self.info.declared_at(function, at, stem).filter(|d| d.space == ".reg")?;
        let ty = Type::named(declared.ty)?;
        // A vector is used by its fields alone, and a scalar has none.
        if (declared.lanes > 1) != (stem.len() != name.len()) || field >= declared.lanes.max(1) {
            return None;
        }
        let number = match stem.len() == declared.name.len() {
            true => u64::MAX,
            false => stem.get(declared.name.len()..)?.parse().ok()?,
        };
        let next = self.frame.slots;
        let slot = *self.registers.entry((declared.at.start, number, field)).or_insert(next);
        if slot == next {
            self.frame.slots += 1;
        }
        Some((slot, ty))
    }

    /// What a name that is no register stands for.
    pub(crate) fn symbol(&self, function: usize, at: u32, name: &str) -> Option<Where> {
        match self.info.declared_at(function, at, name) {
            Some(declared) => self.local.get(&declared.at.start).copied(),
            None => self.module_symbol(name),
        }
    }

    /// Bytes of a `.param` variable in which arguments of a call are made up.
    pub(crate) fn declared_bytes(&self, function: usize, at: u32, name: &str) -> Option<u64> {
        let declared = self.info.declared_at(function, at, name)?;
        // The declaration that holds the name; it has been read once already.
        let body = self.module.functions.get(function)?;
        let statements = self.module.body(body);
        let index = statements.partition_point(|s| s.span.end <= declared.at.start);
        let all = match statements.get(index) {
            Some(statement) if statement.span.contains(declared.at) => {
                declarations(self.module, statement.span, false)
            }
            _ => {
                let lists = [body.returns, body.list].into_iter().flatten();
                lists
                    .flat_map(|l| declarations(self.module, Span::new(l.start + 1, l.end - 1), true))
                    .collect()
            }
        };
        all.iter().find(|d| d.at == declared.at)?.bytes()
    }

    fn module_symbol(&self, name: &str) -> Option<Where> {
        if let Some(&at) = self.placed.get(name) {
            return Some(at);
        }
        self.function(name).map(|index| Where::Code(self.code_address(index)))
    }

    /// The function of that name, through aliases.
    pub(crate) fn function(&self, name: &str) -> Option<usize> {
        let target =
            self.info.aliases.iter().find(|alias| alias.name == name).map_or(name, |alias| alias.target);
        self.info.function(target)
    }

    pub(crate) fn code_address(&self, function: usize) -> u64 {
        window::CODE | self.tag << 20 | (function as u64) << 4
    }
}
