//! Gives elements other arguments, in the text of their configuration. Everything else in the text stays as it is.

use crate::options::Options;
use crate::tree::{ClassUse, Compound, Item, Span, Statement, StatementKind, Subject, Tree};
use crate::{Graph, compile};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// Why an element can't get other arguments in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RewriteError {
    /// The configuration has errors.
    Broken,
    /// There is no element of this name.
    NoElement,
    /// Its text stands for several elements: its compound class is used several times.
    Repeated,
    /// It is declared in a library.
    InLibrary,
    /// Its declaration is shared with other elements, as in `a, b :: Class(...)`.
    Shared,
    /// The text would then mean something else.
    Ambiguous,
}

impl fmt::Display for RewriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Broken => "the configuration has errors",
            Self::NoElement => "the configuration has no such element",
            Self::Repeated => "its text stands for several elements, because its class is used several times",
            Self::InLibrary => "it is declared in a library",
            Self::Shared => "its declaration is shared with other elements",
            Self::Ambiguous => "the arguments can't be written in its parentheses",
        })
    }
}

impl core::error::Error for RewriteError {}

/// The text in which the element called `name` has these arguments instead of its own.
///
/// The new text compiles to the same graph, apart from the arguments.
pub fn rewrite(
    text: &str,
    options: &Options<'_>,
    name: &str,
    arguments: &str,
) -> Result<String, RewriteError> {
    let before = compile(text, options);
    if before.has_errors() {
        return Err(RewriteError::Broken);
    }
    let index = before.graph.element(name).ok_or(RewriteError::NoElement)?;
    let element = &before.graph.elements[index];
    let tree = Tree::parse_within(text, &options.limits);
    let item = find(tree.statements(), &element.location.span).ok_or(RewriteError::InLibrary)?;
    let Some(place) = place(item) else { return Err(RewriteError::Shared) };
    let (head, tail) = match place {
        ArgumentPlace::Replace(span) => (&text[..span.start as usize], &text[span.end as usize..]),
        ArgumentPlace::Insert(at) => text.split_at(at as usize),
    };
    let new = match place {
        ArgumentPlace::Replace(_) => [head, arguments, tail].concat(),
        ArgumentPlace::Insert(_) => [head, "(", arguments, ")", tail].concat(),
    };
    let after = compile(&new, options);
    let is_there = after.graph.elements.get(index).is_some_and(|element| element.config == arguments);
    let is_same = |but: &dyn Fn(usize) -> bool| is_same_but(&before.graph, &after.graph, but);
    if after.has_errors() || !is_there {
        return Err(RewriteError::Ambiguous);
    }
    if is_same(&|changed| changed == index) {
        return Ok(new);
    }
    // The others that this text stands for have changed as well.
    let same_text = |changed: usize| before.graph.elements[changed].location.span == element.location.span;
    Err(if is_same(&same_text) { RewriteError::Repeated } else { RewriteError::Ambiguous })
}

enum ArgumentPlace {
    /// The text between the parentheses.
    Replace(Span),
    /// There are no parentheses yet.
    Insert(u32),
}

/// Where the arguments of a declaration stand.
fn place(item: &Item) -> Option<ArgumentPlace> {
    if let Some(config) = item.config {
        return Some(ArgumentPlace::Replace(config));
    }
    match (&item.class, &item.subject) {
        (Some(ClassUse::Named(class)), _) => Some(ArgumentPlace::Insert(class.end)),
        // `name, name :: Class`, or an anonymous element.
        (None, Subject::Name) => Some(ArgumentPlace::Insert(item.span.end)),
        _ => None,
    }
}

/// The item at this place, also in the bodies of compounds.
fn find<'t>(statements: &'t [Statement], span: &core::ops::Range<usize>) -> Option<&'t Item> {
    let in_compound =
        |compound: &'t Compound| compound.bodies.iter().find_map(|body| find(&body.statements, span));
    let in_class = |class: &'t Option<ClassUse>| match class {
        Some(ClassUse::Compound(compound)) => in_compound(compound),
        _ => None,
    };
    let in_item = |item: &'t Item| {
        let inner = match &item.subject {
            Subject::Group(statements) => return find(statements, span),
            Subject::Compound(compound) => in_compound(compound),
            Subject::Name | Subject::Implicit => None,
        };
        let is_here = item.span.start as usize == span.start && item.span.end as usize == span.end;
        inner.or_else(|| in_class(&item.class)).or_else(|| is_here.then_some(item))
    };
    statements.iter().find_map(|statement| match &statement.kind {
        StatementKind::Chain(steps) => steps.iter().flat_map(|step| &step.items).find_map(in_item),
        StatementKind::ElementClass { class, .. } => in_class(class),
        _ => None,
    })
}

/// Whether two graphs are the same, except for the arguments of some elements.
fn is_same_but(before: &Graph, after: &Graph, may_differ: &dyn Fn(usize) -> bool) -> bool {
    let connections = |graph: &Graph| -> Vec<_> {
        graph.connections.iter().map(|connection| (connection.from, connection.to)).collect()
    };
    let requirements = |graph: &Graph| -> Vec<_> {
        let texts = |requirement: &crate::Requirement| (requirement.kind.clone(), requirement.value.clone());
        graph.requirements.iter().map(texts).collect()
    };
    before.elements.len() == after.elements.len()
        && before.elements.iter().zip(&after.elements).enumerate().all(|(index, (one, other))| {
            one.name == other.name
                && one.class == other.class
                && (may_differ(index) || one.config == other.config)
        })
        && connections(before) == connections(after)
        && requirements(before) == requirements(after)
        && before.provisions == after.provisions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(text: &str, name: &str, arguments: &str) -> Result<String, RewriteError> {
        let is_class = |name: &str| ["A", "B", "C"].contains(&name);
        rewrite(text, &Options::new("config", &is_class), name, arguments)
    }

    #[test]
    fn arguments_are_replaced_in_place() {
        for (text, name, expected) in [
            ("a :: A(1, 2) -> B;", "a", "a :: A(new) -> B;"),
            ("a :: A( 1 /* one */ ) // end\n -> B;", "a", "a :: A(new) // end\n -> B;"),
            ("a :: A -> B;", "a", "a :: A(new) -> B;"),
            ("a :: A [0] -> B;", "a", "a :: A(new) [0] -> B;"),
            ("A(1) -> B(2) -> C;", "B@2", "A(1) -> B(new) -> C;"),
            ("A -> B -> C;", "C@3", "A -> B -> C(new);"),
            ("a :: A; b :: B(x); a -> b;", "b", "a :: A; b :: B(new); a -> b;"),
            ("A -> (-> B(1) ->) -> d :: C(1);", "d", "A -> (-> B(1) ->) -> d :: C(new);"),
            ("define($x 1); a :: A($x); B($x) -> a;", "a", "define($x 1); a :: A(new); B($x) -> a;"),
            (
                "x :: { input -> a :: A(1) -> output }; B -> x -> C;",
                "x/a",
                "x :: { input -> a :: A(new) -> output }; B -> x -> C;",
            ),
            ("B -> { input -> A(1) -> output } -> C;", "@2/A@1", "B -> { input -> A(new) -> output } -> C;"),
            (
                "elementclass X { $v | input -> a :: A($v) -> output } x :: X(1); B -> x -> C;",
                "x/a",
                "elementclass X { $v | input -> a :: A(new) -> output } x :: X(1); B -> x -> C;",
            ),
            (
                "elementclass X { input -> A -> output || input[0] -> A(1) -> [0]output; input[1] -> C; } B -> x :: X -> C; B -> [1]x;",
                "x/A@1",
                "elementclass X { input -> A -> output || input[0] -> A(new) -> [0]output; input[1] -> C; } B -> x :: X -> C; B -> [1]x;",
            ),
        ] {
            assert_eq!(rewritten(text, name, "new").as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_the_text_cannot_say_is_refused() {
        use RewriteError::*;
        for (text, name, arguments, expected) in [
            ("a :: A(", "a", "new", Broken),
            ("a :: A;", "b", "new", NoElement),
            (
                "elementclass X { input -> a :: A(1) -> output } x :: X; B -> x -> y :: X -> C;",
                "x/a",
                "new",
                Repeated,
            ),
            ("a, b :: A(1); a -> b;", "a", "new", Ambiguous),
            ("a, b :: A(1); a -> b;", "b", "new", Ambiguous),
            (
                "elementclass X { $v | input -> a :: A(1) -> output } x :: X(2); B -> x -> C;",
                "x/a",
                "$v",
                Ambiguous,
            ),
            ("a :: A(1);", "a", "1) -> B(2", Ambiguous),
            ("a :: A(1);", "a", "1)", Ambiguous),
            ("a :: A(1);", "a", "1 // x", Ambiguous),
            ("a :: A(1);", "a", "\"x", Ambiguous),
        ] {
            assert_eq!(rewritten(text, name, arguments), Err(expected), "{text} {arguments}");
        }
    }
}
