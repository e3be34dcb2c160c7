//! Classes and compounds during compilation: scopes of class names, and the contents of compounds.

use crate::config;
use crate::steps;
use crate::tree::Span;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::Cell;

/// Index of a class in [`Classes`].
pub(crate) type ClassId = usize;

/// A location: a span of one of the sources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SourceSpan {
    /// Index of the source.
    pub(crate) source: u32,
    /// The span within the source.
    pub(crate) span: Span,
}

/// The kind of a class.
#[derive(Clone)]
pub(crate) enum Class {
    /// A class of the registry, or an unknown one.
    Primitive(Rc<str>),
    /// A compound.
    Compound(Rc<Compound>),
}

/// The classes, and the names currently in scope.
#[derive(Default)]
pub(crate) struct Classes {
    all: Vec<Class>,
    names: BTreeMap<Rc<str>, ClassId>,
    /// The registry's classes that were looked up.
    primitives: BTreeMap<Rc<str>, ClassId>,
    /// Shadowed meanings of names, restored when a compound's scope ends.
    before: Vec<(Rc<str>, Option<ClassId>)>,
}

impl Classes {
    /// Adds an unnamed class.
    pub(crate) fn add(&mut self, class: Class) -> ClassId {
        self.all.push(class);
        self.all.len() - 1
    }

    /// Binds `name` to a class until the scope ends.
    pub(crate) fn name(&mut self, name: Rc<str>, id: ClassId) {
        if name.is_empty() {
            return;
        }
        let before = self.names.insert(name.clone(), id);
        self.before.push((name, before));
    }

    /// The class that a name is bound to.
    pub(crate) fn find(&self, name: &str) -> Option<ClassId> {
        self.names.get(name).copied()
    }

    /// The registry's class called `name`.
    pub(crate) fn primitive(&mut self, name: &str) -> ClassId {
        if let Some(&id) = self.primitives.get(name) {
            return id;
        }
        let name: Rc<str> = name.into();
        let id = self.add(Class::Primitive(name.clone()));
        self.primitives.insert(name, id);
        id
    }

    /// The names in scope.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(|name| &**name)
    }

    /// Returns a class.
    pub(crate) fn get(&self, id: ClassId) -> &Class {
        &self.all[id]
    }

    /// Frees the parts of compounds in steps.
    pub(crate) async fn free(self) {
        for class in self.all {
            if let Class::Compound(compound) = class
                && let Some(compound) = Rc::into_inner(compound)
            {
                steps::free(compound.parts).await;
            }
        }
    }

    /// Begins a scope; pass the result to [`Classes::leave`].
    pub(crate) fn enter(&self) -> usize {
        self.before.len()
    }

    /// Ends a scope: restores the previous bindings.
    pub(crate) fn leave(&mut self, scope: usize) {
        while self.before.len() > scope
            && let Some((name, before)) = self.before.pop()
        {
            match before {
                Some(id) => self.names.insert(name, id),
                None => self.names.remove(&name),
            };
        }
    }
}

/// A parameter of a compound.
pub(crate) struct Parameter {
    /// The variable's name, without `$`.
    pub(crate) name: Rc<str>,
    /// The keyword, or `__REST__` for the remaining arguments; empty for a positional parameter.
    pub(crate) keyword: Rc<str>,
}

/// The kind of a compound's element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartKind {
    /// An element of a class.
    Element(ClassId),
    /// The compound's own `input` or `output`.
    Pseudo,
    /// A group. Its input and its output are the next two parts.
    Group,
    /// A group's input.
    GroupInput,
    /// A group's output.
    GroupOutput,
}

/// A configuration text.
#[derive(Clone, Default)]
pub(crate) struct ConfigText {
    pub(crate) text: Rc<str>,
    /// Where it is written.
    pub(crate) span: Option<SourceSpan>,
    /// Whether exactly this text is written there: without variables and line directives.
    pub(crate) is_verbatim: bool,
}

/// An element of a compound, as declared.
pub(crate) struct Part {
    /// Its name inside the compound; starts with `;` until its number is assigned.
    pub(crate) name: String,
    /// What it is.
    pub(crate) kind: PartKind,
    /// Its configuration, with variables unexpanded.
    pub(crate) config: ConfigText,
    /// Its declaration.
    pub(crate) span: SourceSpan,
    /// The numbers of inputs and outputs in use: the highest port plus one.
    pub(crate) ports: [usize; 2],
}

/// A connection inside a compound.
#[derive(Clone, Copy)]
pub(crate) struct Link {
    /// Part index and output port.
    pub(crate) from: (usize, usize),
    /// Part index and input port.
    pub(crate) to: (usize, usize),
    /// Its location.
    pub(crate) span: SourceSpan,
}

/// A compound, or the top level of a configuration.
pub(crate) struct Compound {
    /// The class name; empty if it has none.
    pub(crate) name: Rc<str>,
    /// Where it begins.
    pub(crate) span: SourceSpan,
    /// The nesting depth of its text in compounds.
    pub(crate) depth: usize,
    /// The parameters: positional ones, then keywords, then the rest.
    pub(crate) parameters: Vec<Parameter>,
    /// Variables that it defines in addition, with their texts.
    pub(crate) definitions: Vec<(Rc<str>, Rc<str>)>,
    /// Its parts; the first two of a compound are `input` and `output`.
    pub(crate) parts: Vec<Part>,
    /// The connections between the parts.
    pub(crate) links: Vec<Link>,
    /// Numbers of inputs and outputs.
    pub(crate) ports: [usize; 2],
    /// The class to try if this one does not match.
    pub(crate) next: Cell<Option<ClassId>>,
}

impl Compound {
    /// Assigns arguments to the parameters; `None` if they do not match.
    pub(crate) fn assign(&self, arguments: &[Rc<str>]) -> Option<Vec<Rc<str>>> {
        let keyed = self.parameters.last().is_some_and(|last| !last.keyword.is_empty());
        if !keyed {
            return (arguments.len() == self.parameters.len()).then(|| arguments.to_vec());
        }
        let takes_rest = self.parameters.last().is_some_and(|last| &*last.keyword == "__REST__");
        let count = self.parameters.len() - usize::from(takes_rest);
        let positional = self.parameters[..count].iter().take_while(|p| p.keyword.is_empty()).count();
        let keywords = self.parameters[..count].iter().enumerate().skip(positional);
        let keywords = keywords.rev().map(|(index, parameter)| (&*parameter.keyword, index));
        let keywords: BTreeMap<&str, usize> = sorting::collect(keywords);
        let mut values: Vec<Option<Rc<str>>> = alloc::vec![None; count];
        let mut rest = String::new();
        let (mut given, mut any_rest) = (0, false);
        for argument in arguments {
            if given < positional {
                values[given] = Some(argument.clone());
                given += 1;
                continue;
            }
            let keyword = config::keyword(argument);
            if let Some((index, value)) =
                keyword.and_then(|(word, value)| Some((*keywords.get(word)?, value)))
            {
                values[index] = Some(value.into());
                continue;
            }
            if !takes_rest {
                return None;
            }
            if any_rest {
                rest.push_str(", ");
            }
            rest.push_str(argument);
            any_rest = true;
        }
        let mut values = values.into_iter().collect::<Option<Vec<_>>>()?;
        if takes_rest {
            values.push(rest.into());
        }
        Some(values)
    }

    /// The compound's signature in a list of candidates.
    pub(crate) fn signature(&self) -> String {
        let parameters: Vec<&str> = self
            .parameters
            .iter()
            .map(|parameter| match &*parameter.keyword {
                "" => "<arg>",
                "__REST__" => "...",
                keyword => keyword,
            })
            .collect();
        let list = if parameters.is_empty() { String::new() } else { format!("({})", parameters.join(", ")) };
        format!("{}{list}[{}]", self.printable_name(), ports_text(self.ports))
    }

    /// The signature of a use, in the error that no candidate matches it.
    pub(crate) fn use_signature(&self, arguments: usize, ports: [usize; 2]) -> String {
        let count =
            if arguments > 0 { format!("{}, ", plural(arguments, "argument")) } else { String::new() };
        format!("{}[{count}{}]", self.printable_name(), ports_text(ports))
    }

    /// Its name, or a placeholder for messages.
    pub(crate) fn printable_name(&self) -> &str {
        if self.name.is_empty() { "<anonymous>" } else { &self.name }
    }
}

fn ports_text([inputs, outputs]: [usize; 2]) -> String {
    format!("{}, {}", plural(inputs, "input"), plural(outputs, "output"))
}

fn plural(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compound(keywords: &[&str]) -> Compound {
        let parameters =
            keywords.iter().map(|&keyword| Parameter { name: "x".into(), keyword: keyword.into() });
        Compound {
            name: "Foo".into(),
            span: SourceSpan::default(),
            depth: 1,
            parameters: parameters.collect(),
            definitions: Vec::new(),
            parts: Vec::new(),
            links: Vec::new(),
            ports: [1, 2],
            next: Cell::new(None),
        }
    }

    #[test]
    fn arguments_are_assigned() {
        let check = |keywords: &[&str], arguments: &[&str], expected: Option<&[&str]>| {
            let arguments: Vec<Rc<str>> = arguments.iter().map(|&argument| argument.into()).collect();
            let values = compound(keywords).assign(&arguments);
            let values = values.as_ref().map(|values| values.iter().map(|v| &**v).collect::<Vec<_>>());
            assert_eq!(values.as_deref(), expected, "{keywords:?} {arguments:?}");
        };
        check(&[], &[], Some(&[]));
        check(&[], &["a"], None);
        check(&["", ""], &["a", "b"], Some(&["a", "b"]));
        check(&["", ""], &["a"], None);
        check(&["", "K"], &["a", "K b"], Some(&["a", "b"]));
        check(&["", "K"], &["a", "b"], None);
        check(&["", "K"], &["a"], None);
        check(&["", "__REST__"], &["a", "b", "c d"], Some(&["a", "b, c d"]));
        check(&["__REST__"], &[], Some(&[""]));
        check(&["", "TWO", "__REST__"], &["A", "TWO B"], Some(&["A", "B", ""]));
        check(&["", "TWO", "__REST__"], &["A", "X", "TWO B", "Y"], Some(&["A", "B", "X, Y"]));
        check(&["K"], &["K a", "K b"], Some(&["b"]));
    }

    #[test]
    fn shapes_are_printed() {
        assert_eq!(compound(&["", "K", "__REST__"]).signature(), "Foo(<arg>, K, ...)[1 input, 2 outputs]");
        assert_eq!(compound(&[]).use_signature(1, [0, 1]), "Foo[1 argument, 0 inputs, 1 output]");
        assert_eq!(compound(&[]).use_signature(0, [2, 0]), "Foo[2 inputs, 0 outputs]");
    }

    #[test]
    fn names_are_forgotten_with_their_scope() {
        let mut classes = Classes::default();
        let outer = classes.add(Class::Primitive("A".into()));
        let inner = classes.add(Class::Primitive("B".into()));
        classes.name("x".into(), outer);
        let scope = classes.enter();
        classes.name("x".into(), inner);
        classes.name("y".into(), inner);
        assert_eq!((classes.find("x"), classes.find("y")), (Some(inner), Some(inner)));
        classes.leave(scope);
        assert_eq!((classes.find("x"), classes.find("y")), (Some(outer), None));
    }
}
