//! Compiles configurations, builds routers, and prints diagnostics.

use std::borrow::Cow;
use std::io::IsTerminal;
use std::rc::Rc;
use std::sync::OnceLock;

use click_lang::{Compiled, Diagnostic, Element, Graph, Severity, config, plain_quotes};
use element::{ArgumentInfo, ClassInfo, Environment};
use router::{Options, Registry, Router};

use crate::color;
use crate::components;
use crate::diagnostic_printer;
use crate::error::{CommandError, FileError};
use crate::source::{Source, SourceText};
use crate::value::{self, ValueError};

/// The classes of the element library.
pub(crate) fn registry() -> Registry {
    Registry::new(components::get().classes)
}

/// The configuration that a command works on.
#[derive(clap::Args)]
pub(crate) struct ConfigurationArguments {
    /// Configuration file. Without it, or with `-`, read standard input.
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: Option<String>,
    /// Use EXPR as the configuration.
    #[arg(short = 'e', long, value_name = "EXPR", conflicts_with = "file", allow_hyphen_values = true)]
    expression: Option<String>,
    /// Parameters for the configuration.
    #[arg(value_name = "NAME=VALUE", value_parser = parameter)]
    parameters: Vec<(String, String)>,
}

impl ConfigurationArguments {
    /// Reads and compiles the configuration, and prints its diagnostics.
    pub(crate) fn compile(&self) -> Result<(SourceText, Graph), CommandError> {
        let text = self.read()?;
        let compiled = compile(&text, &self.parameters, &[]);
        print(&compiled.diagnostics, &text);
        if compiled.has_errors() { Err(CommandError::Configuration) } else { Ok((text, compiled.graph)) }
    }

    /// Reads the configuration.
    fn read(&self) -> Result<SourceText, FileError> {
        let file = || Source::File(self.file.clone().unwrap_or_else(|| "-".into()));
        self.expression.clone().map_or_else(file, Source::Expression).read()
    }
}

/// A parameter `NAME=VALUE`.
pub(crate) fn parameter(text: &str) -> Result<(String, String), ValueError> {
    value::pair(text, "NAME=VALUE")
}

/// Compiles a configuration. Libraries are searched for along `path`.
pub(crate) fn compile(text: &SourceText, parameters: &[(String, String)], path: &[String]) -> Compiled {
    let is_class = |name: &str| registry().contains(name);
    let names: Vec<&str> = registry().classes().map(|class| class.info.name).collect();
    let reader = |name: &str, from: &str| {
        let folders = std::iter::once(from).chain(path.iter().map(|folder| &**folder));
        folders.into_iter().find_map(|folder| {
            let path = if folder.is_empty() || name.starts_with('/') {
                name.into()
            } else {
                format!("{folder}/{name}")
            };
            let text = std::fs::read_to_string(&path).ok()?;
            Some(click_lang::Library { path, text })
        })
    };
    let mut options = click_lang::Options::new(&text.name, &is_class);
    options.parameters = parameters;
    options.class_names = &names;
    options.reader = Some(&reader);
    click_lang::compile(&text.text, &options)
}

/// Builds a router.
pub(crate) fn router(
    graph: Graph,
    environment: Rc<dyn Environment>,
    options: Options,
) -> Result<Router, Vec<Diagnostic>> {
    Router::new(graph, registry(), environment, options)
}

/// A class of images of users, which this program does not have. Its first argument is a file.
pub(crate) const WASM: &str = "Wasm";

/// The files that an element reads: the values of those arguments that its class declares to name one.
pub(crate) fn input_files(element: &Element) -> Vec<String> {
    let given = config::arguments(&element.config);
    let Some(class) = registry().find(&element.class) else {
        let file = (element.class == WASM).then(|| given.first()).flatten();
        let file = file.map(|given| config::unquote(given.strip_prefix("FILE ").unwrap_or(given).trim()));
        return file.and_then(|file| String::from_utf8(file).ok()).into_iter().collect();
    };
    values(&given, class.info, |argument| argument.input_file)
}

/// The device that an element writes to, if it does.
pub(crate) fn written_device(element: &Element) -> Option<String> {
    let class = registry().find(&element.class).filter(|class| class.info.name == "ToDevice")?;
    values(&config::arguments(&element.config), class.info, |argument| argument.keyword == "DEVNAME").pop()
}

/// The values that are given for some of the arguments of a class.
fn values(given: &[Cow<'_, str>], class: &ClassInfo, is_wanted: fn(&ArgumentInfo) -> bool) -> Vec<String> {
    let mut names = Vec::new();
    let mut positions = 0..;
    for argument in class.arguments() {
        let position = argument.positional.then(|| positions.next()).flatten();
        if !is_wanted(argument) {
            continue;
        }
        let by_keyword = given.iter().find_map(|given| {
            given.strip_prefix(argument.keyword).filter(|rest| rest.starts_with(char::is_whitespace))
        });
        let by_position = position.and_then(|position| given.get(position)).map(|given| &**given);
        let value = by_keyword.or(by_position).map(|value| config::unquote(value.trim()));
        names.extend(value.and_then(|value| String::from_utf8(value).ok()));
    }
    names
}

/// Prints diagnostics with their source lines on standard error, except for consequences of others.
pub(crate) fn print(diagnostics: &[Diagnostic], text: &SourceText) {
    let mut printer = diagnostic_printer::DiagnosticPrinter::new(color::is_enabled(&std::io::stderr()));
    let diagnostics = click_lang::in_parts(diagnostics.to_vec());
    for diagnostic in diagnostics.iter().filter(|diagnostic| !diagnostic.is_consequence) {
        eprintln!("{}", printer.render(diagnostic, text));
    }
}

/// Prints diagnostics as Click does: `file:line: message`. Diagnostics of one element share their first line.
pub(crate) fn print_plain(diagnostics: &[Diagnostic], warnings: bool) {
    let mut above = String::new();
    for diagnostic in diagnostics {
        if warnings || diagnostic.severity != Severity::Warning {
            let text = diagnostic.to_string();
            match text.split_once('\n') {
                Some((first, rest))
                    if first == above && (rest.starts_with(' ') || diagnostic.data_location.is_some()) =>
                {
                    eprintln!("{}", quoted(rest))
                }
                _ => eprintln!("{}", quoted(&text)),
            }
            above = text.split('\n').next().unwrap_or_default().to_string();
        }
    }
}

/// Keeps a message's typographic quotes only on a UTF-8 terminal, as Click does: scripts match plain quotes.
pub(crate) fn quoted(message: &str) -> Cow<'_, str> {
    if std::io::stderr().is_terminal() { quoted_by_language(message) } else { plain_quotes(message).into() }
}

/// Keeps a message's typographic quotes wherever the locale is UTF-8, terminal or not, as Click does in option errors.
pub(crate) fn quoted_by_language(message: &str) -> Cow<'_, str> {
    static TYPOGRAPHIC: OnceLock<bool> = OnceLock::new();
    let typographic = TYPOGRAPHIC.get_or_init(|| {
        let language = std::env::var("LANG").unwrap_or_default();
        ["UTF-8", "UTF8", "utf8"].iter().any(|name| language.contains(name))
    });
    if *typographic { message.into() } else { plain_quotes(message).into() }
}
