//! Text to tracepoints, tables, and what is asked of a site.

use crate::program::{
    Builtin, Func, Key, Op, Operand, Part, Placement, SiteKey, SiteValue, Table, TableId, Tracepoint, Type,
    Unit,
};
use crate::text::lex::Token;
use crate::text::parse::{Parsed, Parser, fault};
use nt_diag::Span;

impl Parser<'_> {
    /// `@bytes: sum u64 [block, line]`
    pub(super) fn table(&mut self) -> Parsed<Table> {
        let name = self.table_name()?;
        self.punct(":")?;
        let func = self.known("what is done to a cell", Func::from_word)?;
        let ty = self.known("a type", Type::from_word)?;
        self.punct("[")?;
        let mut keys = Vec::new();
        while !self.eat("]")? {
            if !keys.is_empty() {
                self.punct(",")?;
            }
            keys.push(self.known("a key", key)?);
        }
        Ok(Table { name, func, ty, keys, span: self.span()? })
    }

    fn table_name(&mut self) -> Parsed<String> {
        match self.take()? {
            (Token::At(name), _) => Ok(name.to_owned()),
            (other, span) => Err(fault(span, format!("expected a table, found {other}"))),
        }
    }

    pub(super) fn point(&mut self) -> Parsed<Tracepoint> {
        let (token, span) = self.take()?;
        let Token::Word(provider) = token else {
            return Err(fault(span, format!("expected a tracepoint, found {token}")));
        };
        self.punct(":")?;
        match provider {
            "kernel" => self.kernel(),
            "inst" => self.instructions(),
            "ptx" => {
                let glob = self.string()?;
                Ok(Tracepoint::Ptx { glob, placement: self.placement()? })
            }
            "line" => self.lines(),
            "mark" => Ok(Tracepoint::Mark { glob: self.string()? }),
            "func" => {
                let glob = self.string()?;
                self.punct(":")?;
                match self.take()? {
                    (Token::Word("entry"), _) => Ok(Tracepoint::FuncEntry { glob }),
                    (Token::Word("exit"), _) => Ok(Tracepoint::FuncExit { glob }),
                    (other, span) => Err(fault(span, format!("expected `entry` or `exit`, found {other}"))),
                }
            }
            "bb" => match self.take()? {
                (Token::Word("entry"), _) => Ok(Tracepoint::Block { looped: false }),
                (Token::Word("loop"), _) => Ok(Tracepoint::Block { looped: true }),
                (other, span) => Err(fault(span, format!("expected `entry` or `loop`, found {other}"))),
            },
            other => Err(fault(span, format!("unknown kind of tracepoint `{other}`"))),
        }
    }

    fn kernel(&mut self) -> Parsed<Tracepoint> {
        let kernel = match self.next.0 {
            Token::Str(_) => {
                let glob = self.string()?;
                self.punct(":")?;
                Some(glob)
            }
            _ => None,
        };
        let (token, span) = self.take()?;
        match token {
            Token::Word("entry") => Ok(Tracepoint::KernelEntry { kernel }),
            Token::Word("exit") => Ok(Tracepoint::KernelExit { kernel }),
            other => Err(fault(span, format!("expected `entry` or `exit`, found {other}"))),
        }
    }

    /// `"gemm.cu":120-140:after`
    fn lines(&mut self) -> Parsed<Tracepoint> {
        let file = self.string()?;
        self.punct(":")?;
        let first = self.small("a line")?;
        self.punct("-")?;
        let last = self.small("a line")?;
        Ok(Tracepoint::Line { file, first, last, placement: self.placement()? })
    }

    /// A number of a type that is narrower than 64 bits.
    fn small<T: TryFrom<u64>>(&mut self, what: &str) -> Parsed<T> {
        let span = self.next.1;
        T::try_from(self.number()?).map_err(|_| fault(span, format!("{what} beyond what there may be")))
    }

    /// `addr`, `out[0]`
    pub(super) fn operand(&mut self) -> Parsed<Operand> {
        let span = self.next.1;
        let part = self.known("an operand", Part::from_word)?;
        let index = match self.eat("[")? {
            true => {
                let index = self.small("an index")?;
                self.punct("]")?;
                index
            }
            false => 0,
        };
        Operand::of(part, index)
            .ok_or_else(|| fault(span, format!("`{}` is no operand that is known at run time", part.word())))
    }

    /// `load|store.global.v4:reach`; `*` in the place of spaces is any.
    fn instructions(&mut self) -> Parsed<Tracepoint> {
        let classes = self.alternatives()?;
        let (mut spaces, mut quals) = (Vec::new(), Vec::new());
        if self.eat(".")? {
            spaces = self.alternatives()?;
            spaces.retain(|space| space != "*");
        }
        while self.eat(".")? {
            quals.push(self.alternatives()?);
        }
        Ok(Tracepoint::Inst { classes, spaces, quals, placement: self.placement()? })
    }

    fn alternatives(&mut self) -> Parsed<Vec<String>> {
        let mut words = Vec::new();
        loop {
            words.push(if self.eat("*")? { "*".to_owned() } else { self.name()?.to_owned() });
            if !self.eat("|")? {
                return Ok(words);
            }
        }
    }

    fn placement(&mut self) -> Parsed<Placement> {
        match self.eat(":")? {
            true => self.known("a placement", Placement::from_word),
            false => Ok(Placement::Before),
        }
    }

    /// What stands after `site`, `operand`, `has` or `match`.
    pub(super) fn asked_of_the_site(&mut self, word: &str) -> Parsed<Op> {
        match word {
            "site" => Ok(Op::Site(self.known("a number of the site", SiteValue::from_word)?)),
            "operand" => Ok(Op::Operand(self.operand()?)),
            "has" => Ok(Op::Has(self.known("an operand", Part::from_word)?)),
            _ => {
                let what = self.known("a name of the site", SiteKey::from_word)?;
                Ok(Op::Match { what, glob: self.string()? })
            }
        }
    }

    /// What stands after `count` or `sum`, which is at `span`; the table says which of them it must be.
    pub(super) fn aggregate(&mut self, span: Span) -> Parsed<Op> {
        let name = self.table_name()?;
        let Some(index) = self.tables.iter().position(|table| table.name == name) else {
            return Err(fault(span, format!("unknown table `@{name}`")));
        };
        let value = match self.eat("(")? {
            true => {
                let value = self.value()?;
                self.punct(")")?;
                Some(value)
            }
            false => None,
        };
        Ok(Op::Aggregate { table: TableId(index as u32), value })
    }
}

/// The key that `word` names.
fn key(word: &str) -> Option<Key> {
    let site = SiteKey::from_word(word).map(Key::Site);
    site.or_else(|| Unit::from_word(word).map(Key::Unit))
        .or_else(|| Builtin::from_word(word).filter(|builtin| *builtin == Builtin::Cu).map(Key::Bounded))
}
