//! The inputs of a compilation besides the text.

use crate::Limits;
use alloc::string::String;

/// The inputs of a compilation besides the text.
#[derive(Clone)]
pub struct Options<'a> {
    /// The file name for messages; `config` if empty.
    pub file: &'a str,
    /// Variables from outside, such as `NAME=VALUE` on a command line. They override the text's own at file scope.
    pub parameters: &'a [(String, String)],
    /// Whether a name is an element class.
    pub is_class: &'a dyn Fn(&str) -> bool,
    /// Element class names, for hints on misspelt names; may be empty.
    pub class_names: &'a [&'a str],
    /// Finds libraries. Without it `require(library ...)` fails.
    pub reader: Option<&'a Reader<'a>>,
    /// Limits on the cost of the configuration.
    pub limits: Limits,
}

/// Finds a library by the name in a requirement. The second argument is the folder of the requiring file, such as `.`.
pub type Reader<'a> = dyn Fn(&str, &str) -> Option<Library> + 'a;

/// A library file.
#[derive(Clone, Debug)]
pub struct Library {
    /// The file name, for messages and to recognise a library that was already read.
    pub path: String,
    /// Its text.
    pub text: String,
}

impl<'a> Options<'a> {
    /// Options for a text called `file`, with the classes that `is_class` accepts and defaults for the rest.
    pub fn new(file: &'a str, is_class: &'a dyn Fn(&str) -> bool) -> Self {
        Self { file, parameters: &[], is_class, class_names: &[], reader: None, limits: Limits::default() }
    }
}
