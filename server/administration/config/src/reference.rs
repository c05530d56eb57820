//! Tests that `docs/reference` matches the code.

use crate::disk::FullDisk;
use crate::shape::{Shape, schema};
use serde_json::Value;
use std::fmt::Write;
use std::path::PathBuf;

const BEGIN: &str = "<!-- keys: ";
const END: &str = "<!-- end keys -->";

fn reference(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference")).join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(reference(name)).unwrap_or_default()
}

fn assert_generated(name: &str, generated: &str) {
    if std::env::var_os("OUTBOARD_REGENERATE").is_some() {
        std::fs::write(reference(name), generated).unwrap();
    }
    assert!(
        read(name) == generated,
        "docs/reference/{name} is out of date; run \
         OUTBOARD_REGENERATE=1 cargo test -p outboard-config"
    );
}

#[test]
fn the_schema_file_is_up_to_date() {
    assert_generated("outboard.schema.json", &format!("{:#}\n", schema()));
}

#[test]
fn the_reference_tables_are_up_to_date() {
    assert_generated("configuration.md", &with_tables(&read("configuration.md")));
}

#[test]
fn the_reference_has_a_table_for_every_section() {
    let text = read("configuration.md");
    let mut sections = vec![String::new()];
    collect(Shape::file(), "", &mut sections);
    for section in sections {
        let name = if section.is_empty() { "the top of the file" } else { section.as_str() };
        assert!(text.contains(&format!("{BEGIN}{name} -->")), "no table of {name}");
    }
}

#[test]
fn every_example_of_the_reference_is_valid() {
    let text = read("configuration.md");
    let blocks = text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let mut count = 0;
    for block in blocks {
        let app = if block.contains("[app.") { "" } else { "\n[app.site]\nroot = \"public\"\n" };
        let path = std::path::Path::new("/etc/outboard/outboard.toml");
        if let Err(errors) = crate::parse_on(&FullDisk, &format!("{block}{app}"), path) {
            panic!("{errors}\nin\n{block}");
        }
        count += 1;
    }
    assert!(count > 5, "the reference has {count} examples");
}

#[test]
fn every_default_can_be_written_down() {
    let mut sections = vec![String::new()];
    collect(Shape::file(), "", &mut sections);
    let mut count = 0;
    // Sections with keys that are required.
    let is_partial = |section: &str| {
        let required = ["listen", "rate_sharing", "redirect"];
        section.contains("NAME")
            || required.contains(&section)
            || section.starts_with("admin.dashboard")
    };
    for section in sections.iter().filter(|section| !is_partial(section)) {
        let shape = find(if section.is_empty() { "the top of the file" } else { section });
        for (key, inner) in shape.keys() {
            let Some(default) = inner.keyword("default") else { continue };
            let header = if section.is_empty() { String::new() } else { format!("[{section}]") };
            let text = format!("{header}\n{key} = {default}\n[app.site]\nroot = \"public\"\n");
            if let Err(errors) = crate::parse_on(&FullDisk, &text, "/srv/outboard.toml".as_ref()) {
                panic!("{errors}");
            }
            count += 1;
        }
    }
    assert!(count > 40, "{count} defaults");
}

/// The names of all tables, such as `app.NAME.rewrite`. A section that an app inherits whole is
/// described once, at the top.
fn collect(shape: Shape, section: &str, found: &mut Vec<String>) {
    for (key, inner) in shape.keys() {
        let name = if section.is_empty() { key.to_owned() } else { format!("{section}.{key}") };
        let inherited = section == "app.NAME"
            && crate::inherit::INHERITED.contains(&key)
            && Shape::file().key(key).is_some_and(|top| same_keys(top, inner));
        let table = table_of(inner);
        if inherited {
            continue;
        }
        if let Some(table) = table {
            let name = if table.free { format!("{name}.NAME") } else { name };
            found.push(name.clone());
            collect(table.shape, &name, found);
            if let Some(named) = table.shape.free_value().and_then(table_of) {
                let name = format!("{name}.NAME");
                found.push(name.clone());
                collect(named.shape, &name, found);
            }
        }
    }
}

fn same_keys(one: Shape, other: Shape) -> bool {
    one.keys().map(|(key, _)| key).eq(other.keys().map(|(key, _)| key))
}

struct Table {
    shape: Shape,
    /// The key is followed by a user-defined name.
    free: bool,
}

/// The table with known keys under a key, if there is one.
fn table_of(shape: Shape) -> Option<Table> {
    for variant in shape.variants() {
        if variant.keys().next().is_some() {
            return Some(Table { shape: variant, free: false });
        }
        if let Some(table) = variant.items().and_then(table_of) {
            return Some(table);
        }
        if let Some(table) = variant.free_value().and_then(table_of) {
            return Some(Table { free: true, ..table });
        }
    }
    None
}

fn find(section: &str) -> Shape {
    if section == "the top of the file" {
        return Shape::file();
    }
    section.split('.').fold(Shape::file(), |shape, step| match step {
        "NAME" => shape.free_value().and_then(table_of).map_or(shape, |named| named.shape),
        key => {
            let inner = shape.key(key).unwrap_or_else(|| panic!("no key {key} in {section}"));
            table_of(inner).unwrap_or_else(|| panic!("{key} in {section} is not a table")).shape
        }
    })
}

fn with_tables(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(BEGIN) {
        let (before, marked) = rest.split_at(at);
        let section = marked[BEGIN.len()..].split(" -->").next().unwrap();
        let end = marked.find(END).unwrap_or_else(|| panic!("the table of {section} has no end"));
        write!(out, "{before}{BEGIN}{section} -->\n{}{END}", table(find(section))).unwrap();
        rest = &marked[end + END.len()..];
    }
    out + rest
}

fn table(shape: Shape) -> String {
    let required: Vec<&str> = shape.required().collect();
    let mut out =
        String::from("| key | type | default | meaning | elsewhere |\n|---|---|---|---|---|\n");
    for (key, inner) in shape.keys() {
        let default = match inner.keyword("default") {
            _ if required.contains(&key) => "required".to_owned(),
            Some(value) => format!("`{value}`"),
            None => String::new(),
        };
        let elsewhere: Vec<String> = inner.aliases().map(|alias| format!("`{alias}`")).collect();
        let cells = [kind(inner), default, meaning(inner), elsewhere.join(", ")];
        let cells = cells.map(|cell| cell.replace('|', "\\|"));
        writeln!(out, "| `{key}` | {} |", cells.join(" | ")).unwrap();
    }
    out
}

fn kind(shape: Shape) -> String {
    let one = |shape: Shape| {
        if let Some(format) = shape.format() {
            return format.name.to_owned();
        }
        if let Some(items) = shape.items() {
            return format!("array of {}", kind(items));
        }
        if let Some(values) = shape.free_value() {
            return match kind(values).as_str() {
                "table" => "tables by name".to_owned(),
                kind => format!("table of {kind}"),
            };
        }
        let choices: Vec<String> =
            shape.choices().iter().map(|(word, _)| format!("`\"{word}\"`")).collect();
        if !choices.is_empty() {
            return choices.join(", ");
        }
        match shape.types()[..] {
            ["object"] => "table".to_owned(),
            ["integer"] => "number".to_owned(),
            ref types => types.join(" or "),
        }
    };
    let mut variants = shape.variants();
    variants.sort_by_key(|variant| variant.items().is_some());
    variants.into_iter().map(one).collect::<Vec<_>>().join(" or ")
}

fn meaning(shape: Shape) -> String {
    let mut out = shape.description().unwrap_or_default().to_owned();
    for (word, meaning) in shape.choices() {
        if let Some(meaning) = meaning {
            write!(out, " `\"{word}\"`: {}", uncapitalised(meaning)).unwrap();
        }
    }
    let bound = |names: [&str; 2]| names.iter().find_map(|name| shape.keyword(name)).map(plain);
    let least = bound(["x-minimum", "minimum"]).filter(|least| least != "0");
    let most = bound(["x-maximum", "maximum"]).filter(|most| *most != u32::MAX.to_string());
    match (least, most) {
        (Some(least), Some(most)) => write!(out, " From {least} to {most}.").unwrap(),
        (Some(least), None) => write!(out, " At least {least}.").unwrap(),
        (None, Some(most)) => write!(out, " At most {most}.").unwrap(),
        (None, None) => {}
    }
    out
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// "A file." becomes "a file."; abbreviations such as `HTTP`, and words such as `X-Forwarded-For`, stay.
fn uncapitalised(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) if !chars.as_str().starts_with(char::is_uppercase) => {
            first.to_lowercase().chain(chars).collect()
        }
        _ => text.to_owned(),
    }
}
