//! A tree of generated classes, each of about the size of a framework's: 12 groups of ten classes
//! with a base class each. Loaded by the workloads that measure autoloading.

use std::fmt::Write as _;

use crate::error::Result;
use crate::fixture::Fixture;

const GROUPS: usize = 12;

const CLASSES_PER_GROUP: usize = 10;

/// Adds the tree below a directory of the fixture; returns a script that returns all class names.
pub(super) fn add(fixture: &Fixture, directory: &str) -> Result<String> {
    let mut names = "<?php\nreturn [\n".to_owned();
    for group in 1..=GROUPS {
        let group_directory = format!("{directory}/Lab/Group{group:02}");
        fixture.add(&format!("{group_directory}/Base.php"), &base_class(group))?;
        for number in 1..=CLASSES_PER_GROUP {
            let path = format!("{group_directory}/Class{number:02}.php");
            fixture.add(&path, &class(group, number))?;
            let _ = writeln!(names, "    'Lab\\Group{group:02}\\Class{number:02}',");
        }
    }
    Ok(names + "];\n")
}

fn base_class(group: usize) -> String {
    format!(
        "<?php
namespace Lab\\Group{group:02};

abstract class Base
{{
    protected array $options = [];

    public function setOptions(array $options): static
    {{
        $this->options = $options + $this->options;
        return $this;
    }}
}}
"
    )
}

fn class(group: usize, number: usize) -> String {
    let mut text = format!(
        "<?php\nnamespace Lab\\Group{group:02};\n\nfinal class Class{number:02} extends Base\n{{\n"
    );
    for property in 1..=5 {
        let _ = write!(
            text,
            "    private ?string $property{property} = null;

    public function getProperty{property}(): string
    {{
        return $this->property{property} ?? $this->options['property{property}'] ?? '{number}';
    }}

    public function setProperty{property}(string $value): void
    {{
        if (strlen($value) > 255) {{
            throw new \\InvalidArgumentException('property{property} is too long');
        }}
        $this->property{property} = trim($value);
    }}

"
        );
    }
    text + "}\n"
}
