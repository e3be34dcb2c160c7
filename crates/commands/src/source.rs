//! The source of a configuration's text.

use std::io::Read;

/// The source of a configuration.
pub(crate) enum Source {
    /// The command line.
    Expression(String),
    /// A file; `-` is standard input.
    File(String),
}

/// A configuration's text and its name in messages.
pub(crate) struct SourceText {
    /// The name.
    pub(crate) name: String,
    /// The text.
    pub(crate) text: String,
}

impl Source {
    /// Reads the text.
    pub(crate) fn read(&self) -> std::io::Result<SourceText> {
        // One byte more than the language accepts, so that a longer text is rejected. A device file may be endless.
        let most = click_lang::Limits::default().source_bytes as u64 + 1;
        let mut bytes = Vec::new();
        match self {
            Source::Expression(text) => return Ok(SourceText { name: "config".into(), text: text.clone() }),
            Source::File(path) if path == "-" => {
                std::io::stdin().lock().take(most).read_to_end(&mut bytes)?
            }
            Source::File(path) => std::fs::File::open(path)?.take(most).read_to_end(&mut bytes)?,
        };
        let name = match self {
            Source::File(path) if path != "-" => path.clone(),
            _ => "<stdin>".into(),
        };
        // A configuration is UTF-8; other bytes are written as `\<hex>`.
        Ok(SourceText { name, text: String::from_utf8_lossy(&bytes).into_owned() })
    }
}

/// Prints on standard error why a configuration can't be read.
pub(crate) fn report_unreadable(source: &Source, error: &std::io::Error) {
    let name = match source {
        Source::File(path) if path != "-" => path,
        _ => "standard input",
    };
    eprintln!("clickbox: {name}: {}", system_message(error));
}

/// The system's message for an error, without the number that the standard library appends.
pub(crate) fn system_message(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_string()
}
