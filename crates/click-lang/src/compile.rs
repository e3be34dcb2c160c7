//! Compilation from text to graph.

use crate::compilation::Compilation;
use crate::options::Options;
use crate::{Diagnostic, Graph, Severity, binary, expand, lower};
use alloc::vec::Vec;

/// The result of a compilation.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The flat graph; if there are errors, as much of it as could be built.
    pub graph: Graph,
    /// All errors and warnings.
    pub diagnostics: Vec<Diagnostic>,
    /// Whether errors kept parts of the text out of the graph, so that its missing connections and ports say nothing.
    pub is_partial: bool,
}

impl Compiled {
    /// Whether there are errors, so that the configuration can't run.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }
}

/// Compiles a configuration. Reports all errors, not only the first; a binary file is one error.
pub fn compile(text: &str, options: &Options<'_>) -> Compiled {
    if let Some(refusal) = binary::refusal(text, options.file) {
        let (graph, diagnostics) = (Graph::default(), alloc::vec![refusal]);
        return Compiled { graph, diagnostics, is_partial: true };
    }
    let mut compilation = Compilation::new(options);
    let outermost = lower::lower(&mut compilation, text);
    expand::expand(&mut compilation, outermost);
    let is_partial = compilation.diagnostics.is_partial();
    Compiled { graph: compilation.graph, diagnostics: compilation.diagnostics.finish(), is_partial }
}
