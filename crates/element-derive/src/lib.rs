//! `#[derive(Args)]`: generates argument parsing and the reference entry of an element from its argument struct.
//!
//! The struct's documentation is the element's: the first paragraph is the summary, the block ```` ```click ```` the
//! runnable example, and the block ```` ```expect ```` the handler values that are expected at the end. Fields are
//! arguments:
//!
//! - the keyword is the field's name in upper case, or `#[arg(keyword = "...")]`;
//! - `#[arg(position)]` allows the argument without its keyword, in the order of the fields;
//! - an `Option<T>` is optional; with `#[arg(default = "text")]`, that text is parsed if the argument is absent; all
//!   other arguments are required;
//! - a `Vec<T>` takes all remaining arguments with `#[arg(rest)]`, or every use of the keyword with `#[arg(repeated)]`;
//! - a struct with `#[arg(flatten)]` holds arguments that several elements share, and derives `ArgumentGroup`.
//!
//! Absent: the parsing of an argument's text, which `FromArgument` does.

mod attributes;
mod documentation;
mod expand;

use proc_macro::TokenStream;

/// See the crate's documentation.
#[proc_macro_derive(Args, attributes(element, arg))]
pub fn derive_args(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    expand::element(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// See the crate's documentation.
#[proc_macro_derive(ArgumentGroup, attributes(arg))]
pub fn derive_argument_group(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    expand::group(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}
