//! Gives elements other arguments, in the text of their configuration. Everything else in the text stays as it is.

use crate::options::Options;
use crate::tree::{ClassUse, Item, Span, Statement, StatementKind, Subject, Tree};
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
    /// It is inside a compound element, whose text may stand for several elements.
    InCompound,
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
            Self::InCompound => "it is inside a compound element, whose text may stand for several elements",
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
    if name.contains('/') {
        return Err(RewriteError::InCompound);
    }
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
    let is_same = !after.has_errors() && is_there && is_same_but(&before.graph, &after.graph, index);
    is_same.then_some(new).ok_or(RewriteError::Ambiguous)
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

/// The item outside compounds whose name is at this place.
fn find<'t>(statements: &'t [Statement], span: &core::ops::Range<usize>) -> Option<&'t Item> {
    let chains = statements.iter().filter_map(|statement| match &statement.kind {
        StatementKind::Chain(steps) => Some(steps),
        _ => None,
    });
    chains.flatten().flat_map(|step| &step.items).find_map(|item| match &item.subject {
        Subject::Group(statements) => find(statements, span),
        _ => (item.span.start as usize == span.start && item.span.end as usize == span.end).then_some(item),
    })
}

/// Whether two graphs are the same, except for the arguments of one element.
fn is_same_but(before: &Graph, after: &Graph, changed: usize) -> bool {
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
                && (index == changed || one.config == other.config)
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
                "elementclass X { input -> a :: A(1) -> output } x :: X; B -> x -> C;",
                "x/a",
                "new",
                InCompound,
            ),
            ("x :: { input -> a :: A(1) -> output }; B -> x -> C;", "x/a", "new", InCompound),
            ("a, b :: A(1); a -> b;", "a", "new", Ambiguous),
            ("a, b :: A(1); a -> b;", "b", "new", Ambiguous),
            ("a :: A(1);", "a", "1) -> B(2", Ambiguous),
            ("a :: A(1);", "a", "1)", Ambiguous),
            ("a :: A(1);", "a", "1 // x", Ambiguous),
            ("a :: A(1);", "a", "\"x", Ambiguous),
        ] {
            assert_eq!(rewritten(text, name, arguments), Err(expected), "{text} {arguments}");
        }
    }
}
