//! What the verifier answers: a list of violations, each with its rule, place and reason.

use crate::{Claim, Rule};
use nt_diag::{Diagnostic, Found, Span};

/// One broken rule at one place of the text that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// The place: of the woven text ([`crate::check`]) or the pruned one ([`crate::check_pruned`]).
    pub span: Span,
    /// What is wrong there: lower case, names in backticks, no full stop.
    pub message: String,
}

impl Violation {
    /// As a diagnostic, whose slug is the rule's name: `--explain V6`.
    pub fn to_diagnostic(&self) -> Diagnostic {
        Diagnostic::error(self.rule.name(), self.span, format!("{} ({})", self.message, self.rule))
            .note(format!("rule {}: {}", self.rule, self.rule.summary()))
            .help(format!("`--explain {}` tells why", self.rule))
    }
}

/// The verifier's answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    violations: Vec<Violation>,
    left_out: usize,
    claims: Vec<(String, Claim)>,
}

impl Report {
    /// How many violations are kept; a text with one a line has more than anybody reads, and the rest is counted.
    pub const KEPT: usize = 1000;

    /// Does the text obey every rule?
    pub fn is_accepted(&self) -> bool {
        self.violations.is_empty()
    }

    /// What is wrong, by position.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// How many more there were than [`Report::KEPT`].
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// The kernels that have a context, by name, and what each claims of it: whoever launches them compares.
    pub fn claims(&self) -> &[(String, Claim)] {
        &self.claims
    }

    /// As diagnostics of the text that was checked.
    pub fn to_found(&self) -> Found {
        let mut found = Found::new();
        for violation in &self.violations {
            found.push(violation.to_diagnostic());
        }
        found
    }

    /// Adds a kernel's claim.
    pub(crate) fn add_claim(&mut self, kernel: &str, claim: &Claim) {
        self.claims.push((kernel.to_owned(), claim.clone()));
    }

    /// Adds one.
    pub(crate) fn add(&mut self, rule: Rule, span: Span, message: impl Into<String>) {
        if self.violations.len() < Self::KEPT {
            self.violations.push(Violation { rule, span, message: message.into() });
        } else {
            self.left_out += 1;
        }
    }

    /// Puts them in order of position; those of one place stay in the order in which they were found.
    pub(crate) fn sorted(mut self) -> Report {
        self.violations.sort_by_key(|v| (v.span.start, v.span.end));
        self
    }
}
