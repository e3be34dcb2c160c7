//! Names by which configurations for other programs know a class, and what their arguments mean here.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use crate::text;

/// A name that a class has in configurations for other programs, such as FastClick with DPDK. Its arguments differ from
/// those of the class, so they are translated when a graph is read.
#[derive(Debug)]
pub struct OtherName {
    /// The name.
    pub name: &'static str,
    /// The keywords of its positional arguments, in order.
    pub positions: &'static [&'static str],
    /// Its keywords that the class calls differently, each with the class's keyword.
    pub renamed: &'static [(&'static str, &'static str)],
    /// Arguments of the class that hold if the configuration does not give them, each a keyword and a value.
    pub defaults: &'static [(&'static str, &'static str)],
    /// Keywords without effect here, separated by spaces, each group with the reason.
    pub ignored: &'static [(&'static str, &'static str)],
    /// What to tell about every use; empty if nothing.
    pub remark: &'static str,
}

impl OtherName {
    /// A name whose arguments are those of the class.
    pub const NONE: OtherName =
        OtherName { name: "", positions: &[], renamed: &[], defaults: &[], ignored: &[], remark: "" };

    /// The class's configuration for a configuration under this name, and warnings: each the argument's text, or nothing
    /// if the whole element is meant, and a message. `is_required` says whether the class needs an argument.
    pub fn translate(&self, config: &str, is_required: bool) -> (String, Vec<(String, String)>) {
        let mut warnings = Vec::new();
        if !self.remark.is_empty() {
            warnings.push((String::new(), self.remark.to_owned()));
        }
        let mut positions = self.positions.iter();
        let mut arguments: Vec<String> = Vec::new();
        let mut given: Vec<String> = Vec::new();
        for argument in text::split_arguments(config) {
            let (keyword, value) = match argument.split_once(char::is_whitespace) {
                Some((word, value)) if is_keyword(word) => (word, value.trim_start()),
                _ => match positions.next() {
                    Some(keyword) => (*keyword, &*argument),
                    // One too many: the class says so.
                    None => {
                        arguments.push(argument);
                        continue;
                    }
                },
            };
            let is_in = |(words, _): &&(&str, &str)| words.split(' ').any(|word| word == keyword);
            if let Some((_, reason)) = self.ignored.iter().find(is_in) {
                let message = alloc::format!("{keyword} has no effect here: {reason}");
                warnings.push((argument.clone(), message));
                continue;
            }
            let renamed = self.renamed.iter().find(|(own, _)| *own == keyword);
            let keyword = renamed.map_or(keyword, |(_, new)| new);
            given.push(keyword.to_owned());
            arguments.push(alloc::format!("{keyword} {value}"));
        }
        // Without any argument, the class reports what is missing.
        // A required argument that is missing would take the text of a default.
        let is_missing = arguments.is_empty() && is_required;
        for (keyword, value) in self.defaults.iter().filter(|_| !is_missing) {
            if !given.iter().any(|given| given == keyword) {
                arguments.push(alloc::format!("{keyword} {value}"));
            }
        }
        (arguments.join(", "), warnings)
    }
}

/// Whether a word at the start of an argument is a keyword.
fn is_keyword(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
        && word.starts_with(|first: char| first.is_ascii_uppercase())
}
