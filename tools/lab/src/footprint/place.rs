//! [`Places`]: the function at an address of a process, by the symbols of its files.
//!
//! Called by [`super`] when a line is touched first. Without symbols a place is the name of the file.

use std::collections::HashMap;
use std::fs;
use std::rc::Rc;

use object::{Object, ObjectSegment, ObjectSymbol, SymbolKind};
use outboard_profile::process_table::Pid;

/// `FILE: FUNCTION`.
pub(super) type Place = Rc<str>;

/// The mapped files of a process.
pub(super) struct Places {
    mappings: Vec<Mapping>,
    files: HashMap<String, File>,
    found: HashMap<(usize, usize), Place>,
}

/// A line of proc_pid_maps(5).
struct Mapping {
    start: u64,
    end: u64,
    offset: u64,
    path: String,
}

/// The functions of a file: where each begins in it, in this order.
#[derive(Default)]
struct File {
    functions: Vec<(u64, String)>,
}

impl Places {
    /// The places of a process.
    pub(super) fn of(process: Pid) -> Self {
        let text = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
        let mappings = text.lines().filter_map(Mapping::parse).collect();
        Self { mappings, files: HashMap::new(), found: HashMap::new() }
    }

    /// The place of an address.
    pub(super) fn find(&mut self, address: u64) -> Place {
        let containing = |mapping: &Mapping| (mapping.start..mapping.end).contains(&address);
        let Some(index) = self.mappings.iter().position(containing) else {
            return "unknown".into();
        };
        let mapping = &self.mappings[index];
        let file =
            self.files.entry(mapping.path.clone()).or_insert_with(|| File::read(&mapping.path));
        let offset = address - mapping.start + mapping.offset;
        let function = file.functions.partition_point(|(start, _)| *start <= offset);
        let place = self.found.entry((index, function)).or_insert_with(|| {
            let name = mapping.path.rsplit('/').next().unwrap_or_default();
            match function.checked_sub(1).and_then(|before| file.functions.get(before)) {
                Some((_, function)) => format!("{name}: {function}").into(),
                None => name.into(),
            }
        });
        Rc::clone(place)
    }
}

impl Mapping {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let hex = |text| u64::from_str_radix(text, 16).ok();
        let offset = hex(words.nth(1)?)?;
        let path = words.nth(2).unwrap_or("anonymous").to_owned();
        Some(Self { start: hex(start)?, end: hex(end)?, offset, path })
    }
}

impl File {
    /// The functions of a file; none if it has no symbols.
    fn read(path: &str) -> Self {
        let Ok(bytes) = fs::read(path) else { return Self::default() };
        let Ok(file) = object::File::parse(&*bytes) else { return Self::default() };
        let segments: Vec<(u64, u64, u64)> = file
            .segments()
            .map(|segment| (segment.address(), segment.size(), segment.file_range().0))
            .collect();
        let offset = |address: u64| {
            let mut containing = segments.iter();
            let (start, _, offset) =
                containing.find(|(start, size, _)| (*start..start + size).contains(&address))?;
            Some(address - start + offset)
        };
        let symbols = file.symbols().chain(file.dynamic_symbols());
        let symbols = symbols.filter(|symbol| symbol.kind() == SymbolKind::Text);
        let mut functions: Vec<(u64, String)> = symbols
            .filter_map(|symbol| {
                let name = format!("{:#}", rustc_demangle::demangle(symbol.name().ok()?));
                Some((offset(symbol.address())?, name))
            })
            .collect();
        functions.sort();
        functions.dedup_by_key(|(start, _)| *start);
        Self { functions }
    }
}
