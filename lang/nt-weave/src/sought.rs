//! What tracepoints of a program could mean in a module, for messages on those that match nothing.
//!
//! ```
//! let text = ".version 8.0\n.target sm_80\n.address_size 64\n.entry k() {\n// nt.mark half\nret; }\n";
//! let (module, mut found) = nt_ptx::parse(text);
//! let info = nt_ptx::resolve(&module, &mut found);
//! let sought = nt_weave::Sought::new(&module, &info);
//! let mark = |glob: &str| nt_ir::program::Tracepoint::Mark { glob: glob.to_owned() };
//! assert!(sought.is_there(&mark("ha*"), 0) && !sought.is_there(&mark("full"), 0));
//! assert_eq!(sought.marks(0), ["half"]);
//! ```
//!
//! Promise: what is there is what the weaver finds, in the kernel and in the functions that it calls; whether it can be
//! woven is another matter.

use crate::choose::{self, Names};
use crate::lines;
use crate::marks;
use crate::sites::{self, Places, SourceFiles};
use nt_diag::Span;
use nt_ir::program::{Config, Probe, Program, Tracepoint, Unit};
use nt_ptx::ModuleInfo;
use nt_ptx::syntax::Module;
use std::cell::RefCell;

/// A module in which is looked.
pub struct Sought<'a, 's> {
    module: &'a Module<'s>,
    info: &'a ModuleInfo<'s>,
    names: Names<'s>,
    files: SourceFiles<'s>,
    places: RefCell<Places<'s>>,
}

impl std::fmt::Debug for Sought<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sought").finish_non_exhaustive()
    }
}

impl<'a, 's> Sought<'a, 's> {
    /// Looks into a module that was parsed and resolved without errors.
    pub fn new(module: &'a Module<'s>, info: &'a ModuleInfo<'s>) -> Self {
        Sought {
            module,
            info,
            names: Names::of(info),
            files: SourceFiles::of(module),
            places: RefCell::new(Places::new(module.text)),
        }
    }

    /// Does the tracepoint match anything in a kernel, an index into [`Module::functions`], or in what it calls?
    pub fn is_there(&self, tracepoint: &Tracepoint, kernel: usize) -> bool {
        let probe = Probe {
            unit: Unit::Thread,
            points: vec![tracepoint.clone()],
            predicate: None,
            values: Vec::new(),
            code: Vec::new(),
            span: Span::default(),
        };
        let program = Program {
            name: String::new(),
            states: Vec::new(),
            maps: Vec::new(),
            tables: Vec::new(),
            probes: vec![probe],
            limits: Vec::new(),
            config: Config::default(),
        };
        self.reached(kernel).into_iter().any(|function| {
            let points = if function == kernel {
                choose::points(self.module, &program, kernel)
            } else {
                choose::points_in(self.module, &program, kernel, function)
            };
            // A way out of a kernel is wanted of its functions too, where it is none.
            let places = &mut self.places.borrow_mut();
            let found = sites::find(self.module, self.info, &points, function, &self.files, places);
            // What is refused there, is there.
            found.map_or(true, |found| !found.is_empty())
        })
    }

    /// The functions with a body that a kernel reaches by direct calls, as indices into [`Module::functions`].
    pub fn functions(&self, kernel: usize) -> Vec<usize> {
        self.reached(kernel).into_iter().filter(|&function| function != kernel).collect()
    }

    /// The names of the marks in a kernel and in what it calls, in text order.
    pub fn marks(&self, kernel: usize) -> Vec<&'s str> {
        let reached = self.reached(kernel);
        let functions = reached.into_iter().filter_map(|function| self.module.functions.get(function));
        functions.flat_map(|function| marks::names(self.module, function)).collect()
    }

    fn reached(&self, kernel: usize) -> Vec<usize> {
        let has_body = |&f: &usize| self.module.functions.get(f).is_some_and(|f| f.body.is_some());
        self.names.reached(self.info, kernel).into_iter().filter(has_body).collect()
    }
}

/// Is `end` what a path ends in, by whole names? `src/gemm.cu` is the end of `/home/a/src/gemm.cu`.
pub fn is_end_of_path(end: &str, path: &str) -> bool {
    lines::is_end_of(end, path)
}
