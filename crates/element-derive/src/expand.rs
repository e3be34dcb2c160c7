//! The generated implementation.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Error, Field, Fields, GenericArgument, PathArguments, Result, Type};

use crate::attributes::{ArgAttributes, ElementAttributes};
use crate::documentation;

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let attributes = ElementAttributes::parse(&input.attrs)?;
    if attributes.name.is_empty() || attributes.group.is_empty() {
        return Err(Error::new_spanned(&input.ident, "#[element(...)] needs `name` and `group`"));
    }
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(&input.ident, "arguments are a struct"));
    };
    let none = syn::punctuated::Punctuated::new();
    let fields = match &data.fields {
        Fields::Named(named) => &named.named,
        Fields::Unit => &none,
        Fields::Unnamed(_) => return Err(Error::new_spanned(&input.ident, "arguments have names")),
    };
    let mut arguments = Vec::new();
    let mut position = 0;
    for field in fields {
        arguments.push(Argument::parse(field, &mut position)?);
    }
    let info = information(input, &attributes, &arguments);
    let (ident, (generics, type_generics, clause)) = (&input.ident, input.generics.split_for_impl());
    let reads = arguments.iter().enumerate().map(|(index, argument)| argument.read(index));
    let values = arguments.iter().enumerate().map(|(index, argument)| argument.value(index));
    Ok(quote! {
        impl #generics ::element::Args for #ident #type_generics #clause {
            const INFO: &'static ::element::Info = &#info;

            fn parse(
                mut arguments: ::element::Arguments,
                setup: &mut ::element::Setup,
            ) -> ::core::result::Result<Self, ::element::SetupError> {
                let infos = <Self as ::element::Args>::INFO.arguments;
                #(#reads)*
                let _ = (infos, &setup);
                arguments.finish().into_result()?;
                Ok(Self { #(#values)* })
            }
        }
    })
}

fn information(input: &DeriveInput, attributes: &ElementAttributes, arguments: &[Argument]) -> TokenStream {
    let ElementAttributes {
        name, aliases, group, ports, processing, flow, commutes, task, reads, see, ..
    } = attributes;
    let text = documentation::text(&input.attrs);
    let documentation::Documentation { summary, description, example, expect } = documentation::parse(&text);
    let notifies = format_ident!("{}", attributes.notifies);
    let phase = format_ident!("{}", attributes.phase);
    let arguments = arguments.iter().map(Argument::information);
    quote! {
        ::element::Info {
            name: #name,
            aliases: &[#(#aliases),*],
            group: #group,
            summary: #summary,
            description: #description,
            example: #example,
            expect: #expect,
            ports: #ports,
            processing: #processing,
            flow: #flow,
            commutes: #commutes,
            task: #task,
            notifies: ::element::Notifies::#notifies,
            phase: ::element::Phase::#phase,
            reads: &[#(#reads),*],
            see: &[#(#see),*],
            arguments: &[#(#arguments),*],
        }
    }
}

/// How a field takes its values.
#[derive(PartialEq)]
enum Shape {
    Required,
    Default,
    Optional,
    Rest,
    Repeated,
}

struct Argument {
    field: syn::Ident,
    inner: Type,
    shape: Shape,
    keyword: String,
    position: Option<usize>,
    default: String,
    summary: String,
}

impl Argument {
    fn parse(field: &Field, position: &mut usize) -> Result<Argument> {
        let attributes = ArgAttributes::parse(&field.attrs)?;
        let Some(ident) = field.ident.clone() else {
            return Err(Error::new_spanned(field, "arguments have names"));
        };
        let many = attributes.rest || attributes.repeated;
        let (shape, inner) = match (inner(&field.ty, "Option"), inner(&field.ty, "Vec")) {
            (Some(inner), _) => (Shape::Optional, inner),
            (None, Some(inner)) if attributes.rest => (Shape::Rest, inner),
            (None, Some(inner)) if attributes.repeated => (Shape::Repeated, inner),
            _ if many => return Err(Error::new_spanned(&field.ty, "`rest` and `repeated` need a Vec")),
            _ if attributes.default.is_some() => (Shape::Default, field.ty.clone()),
            _ => (Shape::Required, field.ty.clone()),
        };
        let place = attributes.position.then(|| {
            *position += 1;
            *position - 1
        });
        Ok(Argument {
            keyword: attributes.keyword.unwrap_or_else(|| keyword(&ident)),
            field: ident,
            inner,
            shape,
            position: place,
            default: attributes.default.unwrap_or_default(),
            summary: documentation::summary(&documentation::text(&field.attrs)),
        })
    }

    fn information(&self) -> TokenStream {
        let Argument { inner, keyword, default, summary, .. } = self;
        let position = match self.position {
            Some(place) => quote!(::core::option::Option::Some(#place)),
            None => quote!(::core::option::Option::None),
        };
        let required = self.shape == Shape::Required;
        let repeated = matches!(self.shape, Shape::Rest | Shape::Repeated);
        quote! {
            ::element::ArgumentInfo {
                keyword: #keyword,
                position: #position,
                required: #required,
                repeated: #repeated,
                kind: <#inner as ::element::FromArgument>::KIND,
                default: #default,
                summary: #summary,
            }
        }
    }

    fn read(&self, index: usize) -> TokenStream {
        let Argument { inner, .. } = self;
        let name = format_ident!("value_{index}");
        match self.shape {
            Shape::Required | Shape::Optional => {
                quote!(let #name = arguments.value::<#inner>(&infos[#index], setup);)
            }
            Shape::Default => {
                quote!(let #name = arguments.value_or_default::<#inner>(&infos[#index], setup);)
            }
            Shape::Rest | Shape::Repeated => {
                let texts = if self.shape == Shape::Rest {
                    quote!(arguments.rest())
                } else {
                    quote!(arguments.find_all(&infos[#index]))
                };
                quote! {
                    let mut #name = ::element::arguments::many();
                    for text in #texts {
                        #name.extend(arguments.parsed::<#inner>(&infos[#index], &text, setup));
                    }
                }
            }
        }
    }

    fn value(&self, index: usize) -> TokenStream {
        let (field, name) = (&self.field, format_ident!("value_{index}"));
        match self.shape {
            Shape::Required | Shape::Default => quote! {
                #field: match #name {
                    ::core::option::Option::Some(value) => value,
                    // Unreachable: `finish` has reported it.
                    ::core::option::Option::None => {
                        return ::core::result::Result::Err(::element::SetupError::default())
                    }
                },
            },
            _ => quote!(#field: #name,),
        }
    }
}

/// `T` of `wrapper<T>`.
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
    use syn::ext::IdentExt;
    ident.unraw().to_string().to_uppercase()
}
