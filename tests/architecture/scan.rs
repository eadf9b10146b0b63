//! What the production code of one file mentions, read from its syntax: comments and strings are
//! nothing, and whatever is there for tests only is left out, item by item.

use proc_macro2::{Delimiter, Spacing, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, Item, Meta, Stmt, UseTree};

/// What one file says.
pub struct File {
    /// The file's own module, then the modules that are written inside it.
    pub scopes: Vec<Scope>,
    /// The modules that are files of their own.
    pub children: Vec<Child>,
}

/// One module, as far as it is written in this file.
#[derive(Default)]
pub struct Scope {
    /// Its path below the file's own module.
    pub inline: Vec<String>,
    /// Its imports, those inside functions too.
    pub imports: Vec<Import>,
    /// Everything else that it mentions.
    pub mentions: Vec<Mention>,
}

/// One leaf of a `use` tree.
pub struct Import {
    /// As it is written, without the `*` of a glob. Begins with `::` where the source does.
    pub path: Vec<String>,
    /// The name that it gets here; none for a glob.
    pub name: Option<String>,
    pub line: usize,
}

/// Something that code says.
pub struct Mention {
    pub what: What,
    pub line: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// `a::b::c`
    Path(Vec<String>),
    /// `.name()`
    Method(String),
    /// `name!()`
    Macro(String),
    /// Any single word of the code.
    Word(String),
}

/// `mod name;`
pub struct Child {
    /// Inside which module of the file.
    pub inline: Vec<String>,
    pub name: String,
    /// `#[path = "…"]`
    pub path: Option<String>,
    pub test: bool,
}

/// Reads a file.
///
/// # Errors
///
/// When it is not Rust.
pub fn file(text: &str) -> Result<File, syn::Error> {
    let parsed = syn::parse_file(text)?;
    let mut file = File { scopes: Vec::new(), children: Vec::new() };
    module(&mut file, Vec::new(), parsed.items);
    Ok(file)
}

fn module(file: &mut File, inline: Vec<String>, items: Vec<Item>) {
    let at = file.scopes.len();
    file.scopes.push(Scope { inline: inline.clone(), ..Scope::default() });
    for mut item in items {
        let test = attributes(&item).iter().any(is_for_tests);
        match item {
            Item::Mod(item) if item.content.is_none() => {
                let path = item.attrs.iter().find_map(path_attribute);
                let name = word(&item.ident.to_string());
                file.children.push(Child { inline: inline.clone(), name, path, test });
            }
            _ if test => {}
            Item::Mod(item) => {
                let mut below = inline.clone();
                below.push(word(&item.ident.to_string()));
                let (_, items) = item.content.unwrap_or_default();
                module(file, below, items);
            }
            Item::Use(item) => {
                let leading = item.leading_colon.is_some();
                import(&mut file.scopes[at].imports, leading, &item.tree);
            }
            _ => {
                let mut production = Production { imports: &mut file.scopes[at].imports };
                production.visit_item_mut(&mut item);
                scan(item.to_token_stream(), &mut file.scopes[at].mentions);
            }
        }
    }
}

/// Takes out what is for tests only, and collects the imports inside functions. Where an attribute
/// is not looked for (fields, single expressions), the code counts as production.
struct Production<'a> {
    imports: &'a mut Vec<Import>,
}

impl VisitMut for Production<'_> {
    fn visit_block_mut(&mut self, block: &mut syn::Block) {
        block.stmts.retain(|statement| match statement {
            Stmt::Local(local) => !for_tests(&local.attrs),
            Stmt::Item(item) if for_tests(attributes(item)) => false,
            Stmt::Item(Item::Use(item)) => {
                import(self.imports, item.leading_colon.is_some(), &item.tree);
                false
            }
            Stmt::Item(_) => true,
            Stmt::Macro(call) => !for_tests(&call.attrs),
            Stmt::Expr(expression, _) => match expression {
                syn::Expr::Block(block) => !for_tests(&block.attrs),
                syn::Expr::If(branch) => !for_tests(&branch.attrs),
                syn::Expr::Call(call) => !for_tests(&call.attrs),
                syn::Expr::MethodCall(call) => !for_tests(&call.attrs),
                _ => true,
            },
        });
        visit_mut::visit_block_mut(self, block);
    }

    fn visit_item_impl_mut(&mut self, item: &mut syn::ItemImpl) {
        item.items.retain(|item| match item {
            syn::ImplItem::Const(item) => !for_tests(&item.attrs),
            syn::ImplItem::Fn(item) => !for_tests(&item.attrs),
            syn::ImplItem::Type(item) => !for_tests(&item.attrs),
            syn::ImplItem::Macro(item) => !for_tests(&item.attrs),
            _ => true,
        });
        visit_mut::visit_item_impl_mut(self, item);
    }

    fn visit_item_trait_mut(&mut self, item: &mut syn::ItemTrait) {
        item.items.retain(|item| match item {
            syn::TraitItem::Const(item) => !for_tests(&item.attrs),
            syn::TraitItem::Fn(item) => !for_tests(&item.attrs),
            syn::TraitItem::Type(item) => !for_tests(&item.attrs),
            syn::TraitItem::Macro(item) => !for_tests(&item.attrs),
            _ => true,
        });
        visit_mut::visit_item_trait_mut(self, item);
    }

    fn visit_expr_match_mut(&mut self, expression: &mut syn::ExprMatch) {
        expression.arms.retain(|arm| !for_tests(&arm.attrs));
        visit_mut::visit_expr_match_mut(self, expression);
    }
}

fn for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(is_for_tests)
}

/// Whether `#[cfg(…)]` holds in tests only.
fn is_for_tests(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg")
        && attribute.parse_args::<Meta>().is_ok_and(|condition| needs_test(&condition))
}

fn needs_test(condition: &Meta) -> bool {
    let parts = |list: &syn::MetaList| -> Vec<Meta> {
        let separated = syn::punctuated::Punctuated::<Meta, syn::Token![,]>::parse_terminated;
        list.parse_args_with(separated).into_iter().flatten().collect()
    };
    match condition {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("all") => parts(list).iter().any(needs_test),
        Meta::List(list) if list.path.is_ident("any") => {
            let parts = parts(list);
            !parts.is_empty() && parts.iter().all(needs_test)
        }
        // `not(test)` is production.
        Meta::List(_) | Meta::NameValue(_) => false,
    }
}

fn path_attribute(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    match &pair.value {
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. })
            if pair.path.is_ident("path") =>
        {
            Some(text.value())
        }
        _ => None,
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn import(imports: &mut Vec<Import>, leading: bool, tree: &UseTree) {
    let start = if leading { vec!["::".to_owned()] } else { Vec::new() };
    leaves(imports, &start, tree);
}

fn leaves(imports: &mut Vec<Import>, before: &[String], tree: &UseTree) {
    let with = |ident: &proc_macro2::Ident| {
        let mut path = before.to_vec();
        // `a::{self}` is `a`.
        if ident != "self" || path.is_empty() {
            path.push(word(&ident.to_string()));
        }
        path
    };
    let line = |span: Span| span.start().line;
    match tree {
        UseTree::Path(tree) => leaves(imports, &with(&tree.ident), &tree.tree),
        UseTree::Group(tree) => tree.items.iter().for_each(|t| leaves(imports, before, t)),
        UseTree::Name(tree) => {
            let path = with(&tree.ident);
            let name = path.last().cloned();
            imports.push(Import { path, name, line: line(tree.ident.span()) });
        }
        UseTree::Rename(tree) => imports.push(Import {
            path: with(&tree.ident),
            name: Some(word(&tree.rename.to_string())),
            line: line(tree.ident.span()),
        }),
        UseTree::Glob(tree) => imports.push(Import {
            path: before.to_vec(),
            name: None,
            line: line(tree.star_token.spans[0]),
        }),
    }
}

/// Collects what tokens mention. It looks at tokens and not at the tree, because the arguments of
/// macros have no tree.
fn scan(tokens: TokenStream, mentions: &mut Vec<Mention>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        let ident = match &tokens[at] {
            TokenTree::Group(group) => {
                scan(group.stream(), mentions);
                at += 1;
                continue;
            }
            TokenTree::Ident(ident) => ident,
            TokenTree::Punct(_) | TokenTree::Literal(_) => {
                at += 1;
                continue;
            }
        };
        let line = ident.span().start().line;
        let mut push = |what| mentions.push(Mention { what, line });
        let before = |n: usize, c| at >= n && is_punct(tokens.get(at - n), c);
        let after_colons = before(1, ':') && before(2, ':');
        let first = word(&ident.to_string());
        push(What::Word(first.clone()));
        // `x.name()`, but not the end of a range `x..name`.
        if before(1, '.') && !before(2, '.') {
            let next = tokens.get(at + 1);
            if is_group(next, Delimiter::Parenthesis) || is_punct(next, ':') {
                push(What::Method(first));
            }
            at += 1;
            continue;
        }
        let mut path = vec![first];
        let start = at;
        at += 1;
        while let (true, true, Some(TokenTree::Ident(next))) =
            (is_joint_colon(tokens.get(at)), is_punct(tokens.get(at + 1), ':'), tokens.get(at + 2))
        {
            path.push(word(&next.to_string()));
            push(What::Word(word(&next.to_string())));
            at += 3;
        }
        let called = tokens.get(at + 1).is_some_and(|t| matches!(t, TokenTree::Group(_)));
        if is_punct(tokens.get(at), '!') && called {
            push(What::Macro(path.last().cloned().unwrap_or_default()));
        }
        if after_colons {
            let earlier = |n| start.checked_sub(n).and_then(|i| tokens.get(i));
            if is_punct(earlier(3), '>') && !is_punct(earlier(4), '-') {
                // The rest of `Vec::<T>::new` or `<T as Trait>::name` belongs to what stands before.
                continue;
            }
            path.insert(0, "::".to_owned());
        }
        if path.len() > 1 {
            push(What::Path(path));
        }
    }
}

fn is_punct(token: Option<&TokenTree>, c: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == c)
}

fn is_joint_colon(token: Option<&TokenTree>) -> bool {
    matches!(token, Some(TokenTree::Punct(p)) if p.as_char() == ':' && p.spacing() == Spacing::Joint)
}

fn is_group(token: Option<&TokenTree>, delimiter: Delimiter) -> bool {
    matches!(token, Some(TokenTree::Group(group)) if group.delimiter() == delimiter)
}

/// A word without the `r#` that lets a keyword be one.
fn word(text: &str) -> String {
    text.strip_prefix("r#").unwrap_or(text).to_owned()
}
