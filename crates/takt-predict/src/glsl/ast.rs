//! The syntax tree.
//!
//! Expressions and statements lie in two tables and refer to each other by number. So dropping a
//! tree is a flat loop, however deep it is, and a long chain of operators costs no stack.

use super::token::Name;
use super::types::Base;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ExprId(pub(super) u32);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct StmtId(pub(super) u32);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Shl,
    Shr,
    Less,
    Greater,
    LessEqual,
    GreaterEqual,
    Equal,
    NotEqual,
    BitAnd,
    BitXor,
    BitOr,
    And,
    Xor,
    Or,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum UnaryOp {
    Plus,
    Minus,
    Not,
    BitNot,
}

/// `++` and `--`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Step {
    pub(super) up: bool,
    pub(super) prefix: bool,
}

#[derive(Clone, Debug)]
pub(super) enum ExprKind {
    Int(u32),
    Uint(u32),
    Float(f32),
    Bool(bool),
    Variable(Name),
    Unary(UnaryOp, ExprId),
    Binary(BinaryOp, ExprId, ExprId),
    /// With an operator for `+=` and its like.
    Assign(Option<BinaryOp>, ExprId, ExprId),
    Step(Step, ExprId),
    Choice(ExprId, ExprId, ExprId),
    /// A function, or the constructor of a structure.
    Call(Name, Vec<ExprId>),
    /// The constructor of a built-in type or of an array.
    Construct(TypeSpec, Vec<ExprId>),
    Field(ExprId, Name),
    Index(ExprId, ExprId),
    Length(ExprId),
    Comma(ExprId, ExprId),
}

#[derive(Clone, Debug)]
pub(super) struct Expr {
    pub(super) kind: ExprKind,
    pub(super) line: u32,
}

/// A type as it is written.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct TypeSpec {
    pub(super) base: BaseSpec,
    pub(super) array: ArraySpec,
    pub(super) line: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BaseSpec {
    BuiltIn(Base),
    Named(Name),
    /// By its number in [`Tree::structs`].
    Inline(u32),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ArraySpec {
    None,
    Unsized,
    Sized(ExprId),
}

#[derive(Clone, Debug)]
pub(super) struct StructSpec {
    pub(super) name: Option<Name>,
    pub(super) fields: Vec<(Name, TypeSpec)>,
    pub(super) line: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Storage {
    #[default]
    None,
    Const,
    Uniform,
    Attribute,
    Varying,
    In,
    Out,
    InOut,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Qualifiers {
    pub(super) storage: Storage,
    pub(super) flat: bool,
    /// An expression, because ES 3.00 allows constant ones.
    pub(super) location: Option<ExprId>,
}

#[derive(Clone, Debug)]
pub(super) struct Declarator {
    pub(super) name: Name,
    pub(super) array: ArraySpec,
    pub(super) value: Option<ExprId>,
}

/// Variables declared together; none if only a structure is declared.
#[derive(Clone, Debug)]
pub(super) struct Declaration {
    pub(super) qualifiers: Qualifiers,
    pub(super) ty: TypeSpec,
    pub(super) variables: Vec<Declarator>,
    pub(super) line: u32,
}

#[derive(Clone, Debug)]
pub(super) enum StmtKind {
    Empty,
    Block(Vec<StmtId>),
    Declare(Declaration),
    Expr(ExprId),
    If(ExprId, StmtId, Option<StmtId>),
    Loop(Loop),
    Switch(ExprId, Vec<StmtId>),
    /// A label in a switch; `default` has no value.
    Case(Option<ExprId>),
    Return(Option<ExprId>),
    Break,
    Continue,
    Discard,
}

/// Any loop; a `while` has neither start nor step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loop {
    pub(super) start: Option<StmtId>,
    pub(super) condition: Option<StmtId>,
    pub(super) step: Option<ExprId>,
    pub(super) body: StmtId,
    /// `do … while`
    pub(super) body_first: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Stmt {
    pub(super) kind: StmtKind,
    pub(super) line: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Parameter {
    pub(super) name: Option<Name>,
    pub(super) ty: TypeSpec,
    pub(super) storage: Storage,
}

#[derive(Clone, Debug)]
pub(super) struct Function {
    pub(super) name: Name,
    pub(super) returns: TypeSpec,
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Option<StmtId>,
    pub(super) line: u32,
}

/// A uniform block.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) name: Name,
    pub(super) fields: Vec<(Name, TypeSpec)>,
    /// Name and array size, if the block has an instance name.
    pub(super) instance: Option<(Name, ArraySpec)>,
    pub(super) line: u32,
}

#[derive(Clone, Debug)]
pub(super) enum Item {
    Function(Function),
    Declare(Declaration),
    Block(Block),
}

/// A parsed shader.
#[derive(Clone, Default, Debug)]
pub(super) struct Tree {
    pub(super) items: Vec<Item>,
    pub(super) structs: Vec<StructSpec>,
    pub(super) exprs: Vec<Expr>,
    pub(super) stmts: Vec<Stmt>,
}

impl Tree {
    pub(super) fn expr(&self, id: ExprId) -> &Expr {
        &self.exprs[id.0 as usize]
    }

    pub(super) fn stmt(&self, id: StmtId) -> &Stmt {
        &self.stmts[id.0 as usize]
    }
}
