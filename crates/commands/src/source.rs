//! The source of a configuration's text.

use std::io::Read;
use std::path::Path;

use crate::error::FileError;

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
    pub(crate) fn read(&self) -> Result<SourceText, FileError> {
        // One byte more than the language accepts, so that a longer text is rejected. A device file may be endless.
        let most = click_lang::Limits::default().source_bytes as u64 + 1;
        let read_all = |file: &mut dyn Read| {
            let mut bytes = Vec::new();
            file.take(most).read_to_end(&mut bytes).map(|_| bytes)
        };
        let (name, bytes) = match self {
            Source::Expression(text) => return Ok(SourceText { name: "config".into(), text: text.clone() }),
            Source::File(path) if path == "-" => {
                ("<stdin>".into(), read_all(&mut std::io::stdin().lock()).map_err(FileError::stdin)?)
            }
            Source::File(path) => {
                let bytes = std::fs::File::open(path).and_then(|mut file| read_all(&mut file));
                (path.clone(), bytes.map_err(|error| FileError::new(Path::new(path), error))?)
            }
        };
        // A configuration is UTF-8; other bytes are written as `\<hex>`.
        Ok(SourceText { name, text: String::from_utf8_lossy(&bytes).into_owned() })
    }
}
