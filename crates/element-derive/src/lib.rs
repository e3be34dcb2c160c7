//! `#[derive(Args)]`: argument parsing and the reference entry of an element, from its argument struct.
//!
//! The struct's documentation is the element's: the first paragraph is the summary, the block ```` ```click ```` the
//! runnable example, the block ```` ```expect ```` what its handlers must read at the end. Fields are arguments:
//!
//! - the keyword is the field's name in upper case, or `#[arg(keyword = "...")]`;
//! - `#[arg(position)]` lets it be given without the keyword, in the order of the fields;
//! - `Option<T>` is optional, `#[arg(default = "text")]` parses that text when absent, anything else is required;
//! - `Vec<T>` with `#[arg(rest)]` takes all that is left, with `#[arg(repeated)]` every use of the keyword;
//! - a struct with `#[arg(flatten)]` has arguments that several elements have, and derives `ArgumentGroup`.
//!
//! Absent: anything about how an argument's text is parsed, which is `FromArgument`'s.

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
