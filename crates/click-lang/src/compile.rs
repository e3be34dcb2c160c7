//! Compilation from text to graph.

use crate::compilation::Compilation;
use crate::options::Options;
use crate::steps::{Computation, complete, pause};
use crate::{Diagnostic, Graph, Location, Severity, binary, expand, lower};
use alloc::boxed::Box;
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
    /// The declarations of elements that an undeclared name probably means, so that their missing connections say
    /// nothing.
    pub probably_meant: Vec<Location>,
    /// What follows a brace or parenthesis that is not closed, so that errors there say nothing.
    pub misread: Vec<Location>,
}

impl Compiled {
    /// Whether there are errors, so that the configuration can't run.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }
}

/// Compiles a configuration. Reports all errors, not only the first; a binary file is one error.
pub fn compile(text: &str, options: &Options<'_>) -> Compiled {
    complete(compile_in_steps(text, options))
}

/// Compiles a configuration like [`compile`], in steps: it pauses after each element, connection and statement.
///
/// The computation is made here, so that its code is generated once, with the optimisation of this crate.
pub fn compile_in_steps<'a>(text: &'a str, options: &'a Options<'_>) -> Computation<'a, Compiled> {
    Box::pin(compute(text, options))
}

async fn compute(text: &str, options: &Options<'_>) -> Compiled {
    if let Some(refusal) = binary::refusal(text, options.file) {
        let (graph, diagnostics) = (Graph::default(), alloc::vec![refusal]);
        return Compiled {
            graph,
            diagnostics,
            is_partial: true,
            probably_meant: Vec::new(),
            misread: Vec::new(),
        };
    }
    let mut compilation = Compilation::new(options);
    let outermost = lower::lower(&mut compilation, text).await;
    pause().await;
    expand::expand(&mut compilation, outermost).await;
    pause().await;
    core::mem::take(&mut compilation.classes).free().await;
    let is_partial = compilation.diagnostics.is_partial();
    let meant = core::mem::take(&mut compilation.probably_meant);
    Compiled {
        probably_meant: meant.into_iter().map(|span| compilation.location(span)).collect(),
        misread: compilation.misread,
        graph: compilation.graph,
        diagnostics: compilation.diagnostics.finish(),
        is_partial,
    }
}
