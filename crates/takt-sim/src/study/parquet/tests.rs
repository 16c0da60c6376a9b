//! A reader of its own, written from the format's description, reads back what was written.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// What the compact protocol can say here.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Int(i64),
    Text(String),
    List(Vec<Self>),
    Struct(BTreeMap<u8, Self>),
}

impl Value {
    fn at(&self, field: u8) -> &Self {
        let Self::Struct(fields) = self else { panic!("{self:?}") };
        fields.get(&field).unwrap_or_else(|| panic!("no field {field} in {self:?}"))
    }

    fn int(&self, field: u8) -> i64 {
        let Self::Int(value) = self.at(field) else { panic!("{self:?}") };
        *value
    }

    fn list(&self, field: u8) -> &[Self] {
        let Self::List(values) = self.at(field) else { panic!("{self:?}") };
        values
    }
}

struct Input<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        self.at += 1;
        self.bytes[self.at - 1]
    }

    fn take(&mut self, length: usize) -> &[u8] {
        self.at += length;
        &self.bytes[self.at - length..self.at]
    }

    fn length(&mut self) -> usize {
        u32::from_le_bytes(self.take(4).try_into().unwrap()) as usize
    }

    fn varint(&mut self) -> u64 {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte();
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return value;
            }
        }
        panic!("a number without end")
    }

    fn value(&mut self, kind: u8) -> Value {
        match kind {
            5 | 6 => {
                let raw = self.varint();
                Value::Int((raw >> 1).cast_signed() ^ -((raw & 1).cast_signed()))
            }
            8 => {
                let length = usize::try_from(self.varint()).unwrap();
                Value::Text(String::from_utf8(self.take(length).to_vec()).unwrap())
            }
            9 => {
                let header = self.byte();
                let count = if header >> 4 == 15 { self.varint() } else { u64::from(header >> 4) };
                Value::List((0..count).map(|_| self.value(header & 15)).collect())
            }
            12 => {
                let (mut fields, mut last) = (BTreeMap::new(), 0);
                loop {
                    let header = self.byte();
                    if header == 0 {
                        return Value::Struct(fields);
                    }
                    assert_ne!(header >> 4, 0, "only the short form of field headers is written");
                    last += header >> 4;
                    fields.insert(last, self.value(header & 15));
                }
            }
            kind => panic!("type {kind}"),
        }
    }

    fn cells(&mut self, kind: Kind, count: usize) -> Vec<Cell> {
        let end = self.length() + self.at;
        let runs = self.varint();
        assert_eq!(runs & 1, 1, "a bit-packed run");
        assert_eq!(usize::try_from(runs >> 1).unwrap(), count.div_ceil(8));
        let packed = self.take(count.div_ceil(8)).to_vec();
        assert_eq!(self.at, end);
        let mut cell = |index: usize| {
            if packed[index / 8] >> (index % 8) & 1 == 0 {
                return Cell::Null;
            }
            match kind {
                Kind::Int => Cell::Int(i64::from_le_bytes(self.take(8).try_into().unwrap())),
                Kind::Float => Cell::Float(f64::from_le_bytes(self.take(8).try_into().unwrap())),
                Kind::Text => {
                    let length = self.length();
                    Cell::Text(String::from_utf8(self.take(length).to_vec()).unwrap())
                }
            }
        };
        (0..count).map(&mut cell).collect()
    }
}

/// Reads a file; every byte must belong to something.
fn decode(bytes: &[u8]) -> Table {
    assert_eq!((&bytes[..4], &bytes[bytes.len() - 4..]), (&b"PAR1"[..], &b"PAR1"[..]));
    let end = bytes.len() - 8;
    let length = u32::from_le_bytes(bytes[end..end + 4].try_into().unwrap()) as usize;
    let mut footer = Input { bytes: &bytes[..end], at: end - length };
    let meta = footer.value(12);
    assert_eq!(footer.at, end);
    let [root, elements @ ..] = meta.list(2) else { panic!("no schema") };
    assert_eq!(root.int(5), wide(elements.len()));
    let column = |element: &Value| {
        assert_eq!(element.int(3), 1);
        let kind = match element.int(1) {
            2 => Kind::Int,
            5 => Kind::Float,
            6 => Kind::Text,
            other => panic!("type {other}"),
        };
        if kind == Kind::Text {
            assert_eq!((element.int(6), element.at(10).at(1)), (0, &Value::Struct(BTreeMap::new())));
        }
        let Value::Text(name) = element.at(4) else { panic!("{element:?}") };
        Column { name: name.clone(), kind }
    };
    let columns: Vec<Column> = elements.iter().map(column).collect();
    let mut rows = Vec::new();
    let mut data = Input { bytes: &bytes[..end - length], at: 4 };
    for group in meta.list(4) {
        let count = usize::try_from(group.int(3)).unwrap();
        let mut group_rows = vec![Vec::new(); count];
        for (chunk, column) in group.list(1).iter().zip(&columns) {
            let (start, chunk) = (data.at, chunk.at(3));
            assert_eq!(chunk.int(9), wide(start));
            assert_eq!(chunk.at(3), &Value::List(vec![Value::Text(column.name.clone())]));
            let header = data.value(12);
            assert_eq!((header.int(1), header.at(5).int(1)), (0, wide(count)));
            let page = data.at;
            let cells = data.cells(column.kind, count);
            assert_eq!((header.int(2), header.int(3)), (wide(data.at - page), wide(data.at - page)));
            assert_eq!(chunk.int(7), wide(data.at - start));
            group_rows.iter_mut().zip(cells).for_each(|(row, cell)| row.push(cell));
        }
        rows.extend(group_rows);
    }
    assert_eq!(data.at, data.bytes.len());
    assert_eq!(meta.int(3), wide(rows.len()));
    Table { columns, rows }
}

fn columns(count: usize) -> Vec<Column> {
    let kinds = [Kind::Int, Kind::Float, Kind::Text].into_iter().cycle();
    kinds.take(count).enumerate().map(|(i, kind)| Column { name: format!("c{i}"), kind }).collect()
}

#[test]
fn extremes_come_back() {
    let rows = vec![
        vec![Cell::Int(i64::MIN), Cell::Float(f64::INFINITY), Cell::Text("ü\0\n".to_owned())],
        vec![Cell::Null, Cell::Null, Cell::Null],
        vec![Cell::Int(i64::MAX), Cell::Float(-0.0), Cell::Text(String::new())],
    ];
    let table = Table { columns: columns(3), rows };
    assert_eq!(decode(&encode(&table)), table);
    let empty = Table { columns: columns(2), rows: Vec::new() };
    assert_eq!(decode(&encode(&empty)), empty);
}

#[test]
fn long_tables_have_several_row_groups_and_wide_ones_long_lists() {
    let row = |n: i64| vec![Cell::Int(n), if n % 3 == 0 { Cell::Null } else { Cell::Float(n as f64) }];
    let long = Table { columns: columns(2), rows: (0..150_000).map(row).collect() };
    assert_eq!(decode(&encode(&long)), long);
    let wide = Table { columns: columns(300), rows: vec![vec![Cell::Null; 300]] };
    assert_eq!(decode(&encode(&wide)), wide);
}

#[test]
fn narrower_cells_widen_to_the_column() {
    let table = Table {
        columns: vec![
            Column { name: "a".to_owned(), kind: Kind::Float },
            Column { name: "b".to_owned(), kind: Kind::Text },
        ],
        rows: vec![vec![Cell::Int(1), Cell::Float(0.5)]],
    };
    assert_eq!(decode(&encode(&table)).rows, [[Cell::Float(1.0), Cell::Text("0.5".to_owned())]]);
}

proptest! {
    #[test]
    fn any_table_comes_back(rows in proptest::collection::vec(
        (proptest::option::of(any::<i64>()), proptest::option::of(-1e9..1e9), proptest::option::of(".{0,20}")),
        0..60,
    )) {
        let row = |(int, float, text): (Option<i64>, Option<f64>, Option<String>)| vec![
            int.map_or(Cell::Null, Cell::Int),
            float.map_or(Cell::Null, Cell::Float),
            text.map_or(Cell::Null, Cell::Text),
        ];
        let table = Table { columns: columns(3), rows: rows.into_iter().map(row).collect() };
        prop_assert_eq!(decode(&encode(&table)), table);
    }
}
