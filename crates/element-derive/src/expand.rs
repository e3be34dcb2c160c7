//! The generated implementations.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::{Data, DeriveInput, Error, Field, Fields, GenericArgument, PathArguments, Result, Type};

use crate::attributes::{ArgAttributes, ElementAttributes};
use crate::documentation;

/// Generates the implementation of `Args`.
pub(crate) fn element(input: &DeriveInput) -> Result<TokenStream> {
    let attributes = ElementAttributes::parse(&input.attrs)?;
    if attributes.name.is_empty() || attributes.group.is_empty() {
        return Err(Error::new_spanned(&input.ident, "#[element(...)] needs `name` and `group`"));
    }
    let fields = fields(input)?;
    let mut pieces = Vec::new();
    let mut summaries = Vec::new();
    let mut reads = Vec::new();
    for piece in fields.chunk_by(|one, next| one.shape != Shape::Group && next.shape != Shape::Group) {
        let group = pieces.len();
        let read = |(index, field): (usize, &Argument)| {
            field.read(&quote!(<Self as ::element::Args>::INFO.arguments[#group][#index]))
        };
        reads.extend(piece.iter().enumerate().map(read));
        match piece {
            [Argument { shape: Shape::Group, inner, .. }] => {
                pieces.push(quote!(<#inner as ::element::ArgumentGroup>::ARGUMENTS));
                summaries.push(quote!(<#inner as ::element::ArgumentGroup>::SUMMARIES));
            }
            own => {
                let (information, text) =
                    (own.iter().map(Argument::information), own.iter().map(|own| &own.summary));
                pieces.push(quote!(&[#(#information),*]));
                summaries.push(quote!(&[#(#text),*]));
            }
        }
    }
    let info = information(&attributes, &pieces);
    let documentation = documentation(input, &attributes, &summaries);
    let ident = &input.ident;
    let (generics, type_generics, clause) = input.generics.split_for_impl();
    let take = take(&fields, &reads);
    Ok(quote! {
        impl #generics ::element::Args for #ident #type_generics #clause {
            const INFO: &'static ::element::ClassInfo = &#info;
            const DOCUMENTATION: &'static ::element::ClassDocumentation = &#documentation;

            #take
        }
    })
}

/// Generates the implementation of `ArgumentGroup`.
pub(crate) fn group(input: &DeriveInput) -> Result<TokenStream> {
    let fields = fields(input)?;
    if fields.iter().any(|field| field.shape == Shape::Group) {
        return Err(Error::new_spanned(&input.ident, "a group has no groups in it"));
    }
    let ident = &input.ident;
    let information = fields.iter().map(Argument::information);
    let summaries = fields.iter().map(|field| &field.summary);
    let read = |(index, field): (usize, &Argument)| {
        field.read(&quote!(<Self as ::element::ArgumentGroup>::ARGUMENTS[#index]))
    };
    let reads: Vec<_> = fields.iter().enumerate().map(read).collect();
    let take = take(&fields, &reads);
    Ok(quote! {
        impl ::element::ArgumentGroup for #ident {
            const ARGUMENTS: &'static [::element::ArgumentInfo] = &[#(#information),*];
            const SUMMARIES: &'static [&'static str] = &[#(#summaries),*];

            #take
        }
    })
}

fn fields(input: &DeriveInput) -> Result<Vec<Argument>> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(&input.ident, "arguments are a struct"));
    };
    match &data.fields {
        Fields::Named(named) => named.named.iter().map(Argument::parse).collect(),
        Fields::Unit => Ok(Vec::new()),
        Fields::Unnamed(_) => Err(Error::new_spanned(&input.ident, "arguments have names")),
    }
}

/// Reads all arguments before it returns on a missing one, so that every error is reported.
fn take(fields: &[Argument], reads: &[TokenStream]) -> TokenStream {
    let values = fields.iter().map(Argument::value);
    quote! {
        fn take(
            arguments: &mut ::element::Arguments,
            setup: &::element::Setup,
        ) -> ::core::option::Option<Self> {
            let _ = (&arguments, setup);
            #(#reads)*
            ::core::option::Option::Some(Self { #(#values),* })
        }
    }
}

fn information(attributes: &ElementAttributes, pieces: &[TokenStream]) -> TokenStream {
    let ElementAttributes {
        name,
        aliases,
        other_names,
        group,
        ports,
        processing,
        flow,
        order_insensitive,
        mixes_inputs,
        storage,
        task,
        upkeep,
        pulls_again,
        keeps_place,
        puts_back,
        logs,
        reads,
        sums,
        lists,
        obsolete,
        ..
    } = attributes;
    let drops = attributes.drops.iter().map(|reason| format_ident!("{}", reason.to_uppercase()));
    let fates = attributes.fates().into_iter().map(|fate| format_ident!("{fate}"));
    let notifies = format_ident!("{}", attributes.notifies);
    let phase = format_ident!("{}", attributes.phase);
    let shards = format_ident!("{}", attributes.shards);
    let flows = format_ident!("{}", attributes.flows);
    let other_names = other_names.as_ref().map_or_else(
        || quote!(&[]),
        |names| {
            let names = format_ident!("{names}");
            quote!(&#names)
        },
    );
    quote! {
        ::element::ClassInfo {
            name: #name,
            aliases: &[#(#aliases),*],
            other_names: #other_names,
            group: #group,
            ports: #ports,
            processing: #processing,
            flow: #flow,
            order_insensitive: #order_insensitive,
            mixes_inputs: #mixes_inputs,
            storage: #storage,
            task: #task,
            upkeep: #upkeep,
            pulls_again: #pulls_again,
            keeps_place: #keeps_place,
            puts_back: #puts_back,
            logs: #logs,
            notifies: ::element::Notifies::#notifies,
            phase: ::element::Phase::#phase,
            reads: &[#(#reads),*],
            drops: &[#(::element::Reason::#drops),*],
            fates: &[#(::element::Fate::#fates),*],
            shards: ::element::Sharding {
                mode: ::element::ShardMode::#shards,
                flows: ::element::FlowUse::#flows,
                sums: &[#(#sums),*],
                lists: &[#(#lists),*],
            },
            obsolete: #obsolete,
            arguments: &[#(#pieces),*],
        }
    }
}

fn documentation(
    input: &DeriveInput,
    attributes: &ElementAttributes,
    arguments: &[TokenStream],
) -> TokenStream {
    let ElementAttributes { name, see, .. } = attributes;
    let text = documentation::text(&input.attrs);
    let documentation::Documentation { summary, description, example, expect } = documentation::parse(&text);
    quote! {
        ::element::ClassDocumentation {
            name: #name,
            summary: #summary,
            description: #description,
            example: #example,
            expect: #expect,
            see: &[#(#see),*],
            arguments: &[#(#arguments),*],
        }
    }
}

/// How a field receives its values.
#[derive(PartialEq)]
enum Shape {
    Required,
    Default,
    Optional,
    Rest,
    Repeated,
    /// Several arguments, described by a struct of their own.
    Group,
}

struct Argument {
    field: syn::Ident,
    inner: Type,
    shape: Shape,
    keyword: String,
    positional: bool,
    default: String,
    input_file: bool,
    deprecated: bool,
    summary: String,
}

impl Argument {
    fn parse(field: &Field) -> Result<Argument> {
        let attributes = ArgAttributes::parse(&field.attrs)?;
        let Some(ident) = field.ident.clone() else {
            return Err(Error::new_spanned(field, "arguments have names"));
        };
        let many = attributes.rest || attributes.repeated;
        let (shape, inner) = match (inner(&field.ty, "Option"), inner(&field.ty, "Vec")) {
            _ if attributes.flatten => (Shape::Group, field.ty.clone()),
            (Some(inner), _) => (Shape::Optional, inner),
            (None, Some(inner)) if attributes.rest => (Shape::Rest, inner),
            (None, Some(inner)) if attributes.repeated => (Shape::Repeated, inner),
            _ if many => return Err(Error::new_spanned(&field.ty, "`rest` and `repeated` need a Vec")),
            _ if attributes.default.is_some() => (Shape::Default, field.ty.clone()),
            _ => (Shape::Required, field.ty.clone()),
        };
        Ok(Argument {
            keyword: attributes.keyword.unwrap_or_else(|| keyword(&ident)),
            field: ident,
            inner,
            shape,
            positional: attributes.position,
            default: attributes.default.unwrap_or_default(),
            input_file: attributes.input_file,
            deprecated: attributes.deprecated,
            summary: documentation::summary(&documentation::text(&field.attrs)),
        })
    }

    fn information(&self) -> TokenStream {
        let Argument { inner, keyword, default, input_file, deprecated, positional, .. } = self;
        let required = self.shape == Shape::Required;
        let repeated = matches!(self.shape, Shape::Rest | Shape::Repeated);
        quote! {
            ::element::ArgumentInfo {
                keyword: #keyword,
                positional: #positional,
                required: #required,
                repeated: #repeated,
                kind: <#inner as ::element::FromArgument>::KIND,
                default: #default,
                input_file: #input_file,
                deprecated: #deprecated,
            }
        }
    }

    /// The local variable that holds the field's value until all fields are read.
    fn variable(&self) -> syn::Ident {
        let name = self.field.unraw().to_string();
        format_ident!("value_of_{}", name.trim_start_matches('_'))
    }

    fn read(&self, info: &TokenStream) -> TokenStream {
        let Argument { inner, .. } = self;
        let value = match self.shape {
            Shape::Required | Shape::Optional => quote!(arguments.value::<#inner>(&#info, setup)),
            Shape::Default => quote!(arguments.value_or_default::<#inner>(&#info, setup)),
            Shape::Rest => quote!(arguments.rest::<#inner>(&#info, setup)),
            Shape::Repeated => quote!(arguments.values::<#inner>(&#info, setup)),
            Shape::Group => quote!(<#inner as ::element::ArgumentGroup>::take(arguments, setup)),
        };
        let variable = self.variable();
        quote!(let #variable = #value;)
    }

    fn value(&self) -> TokenStream {
        let (field, variable) = (&self.field, self.variable());
        match self.shape {
            Shape::Required | Shape::Default | Shape::Group => quote!(#field: #variable?),
            Shape::Optional | Shape::Rest | Shape::Repeated => quote!(#field: #variable),
        }
    }
}

/// The `T` in `wrapper<T>`.
fn inner(ty: &Type, wrapper: &str) -> Option<Type> {
    let Type::Path(path) = ty else { return None };
    let segment = path.path.segments.last().filter(|segment| segment.ident == wrapper)?;
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(inner) => Some(inner.clone()),
        _ => None,
    }
}

/// The keyword of a field: its name in upper case; `r#type` is TYPE.
fn keyword(ident: &syn::Ident) -> String {
    ident.unraw().to_string().to_uppercase()
}
