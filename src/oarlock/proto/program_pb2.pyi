from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DTYPE_UNSPECIFIED: _ClassVar[DType]
    FLOAT16: _ClassVar[DType]
    BFLOAT16: _ClassVar[DType]
    FLOAT32: _ClassVar[DType]
    FLOAT64: _ClassVar[DType]
    INT8: _ClassVar[DType]
    INT16: _ClassVar[DType]
    INT32: _ClassVar[DType]
    INT64: _ClassVar[DType]
    UINT8: _ClassVar[DType]
    BOOL: _ClassVar[DType]
    COMPLEX64: _ClassVar[DType]
    COMPLEX128: _ClassVar[DType]

class Role(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FORWARD: _ClassVar[Role]
    BACKWARD: _ClassVar[Role]
    UPDATE: _ClassVar[Role]
    MEASURE: _ClassVar[Role]
DTYPE_UNSPECIFIED: DType
FLOAT16: DType
BFLOAT16: DType
FLOAT32: DType
FLOAT64: DType
INT8: DType
INT16: DType
INT32: DType
INT64: DType
UINT8: DType
BOOL: DType
COMPLEX64: DType
COMPLEX128: DType
FORWARD: Role
BACKWARD: Role
UPDATE: Role
MEASURE: Role

class ProgramFile(_message.Message):
    __slots__ = ("program", "source")
    PROGRAM_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    program: ProgramDesc
    source: SourceDesc
    def __init__(self, program: _Optional[_Union[ProgramDesc, _Mapping]] = ..., source: _Optional[_Union[SourceDesc, _Mapping]] = ...) -> None: ...

class ProgramDesc(_message.Message):
    __slots__ = ("version", "seed", "blocks", "targets", "training")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    TRAINING_FIELD_NUMBER: _ClassVar[int]
    version: int
    seed: int
    blocks: _containers.RepeatedCompositeFieldContainer[BlockDesc]
    targets: _containers.RepeatedCompositeFieldContainer[TargetDesc]
    training: TrainingDesc
    def __init__(self, version: _Optional[int] = ..., seed: _Optional[int] = ..., blocks: _Optional[_Iterable[_Union[BlockDesc, _Mapping]]] = ..., targets: _Optional[_Iterable[_Union[TargetDesc, _Mapping]]] = ..., training: _Optional[_Union[TrainingDesc, _Mapping]] = ...) -> None: ...

class TargetDesc(_message.Message):
    __slots__ = ("label", "var")
    LABEL_FIELD_NUMBER: _ClassVar[int]
    VAR_FIELD_NUMBER: _ClassVar[int]
    label: str
    var: str
    def __init__(self, label: _Optional[str] = ..., var: _Optional[str] = ...) -> None: ...

class TrainingDesc(_message.Message):
    __slots__ = ("batch_size", "epochs", "backend")
    BATCH_SIZE_FIELD_NUMBER: _ClassVar[int]
    EPOCHS_FIELD_NUMBER: _ClassVar[int]
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    batch_size: int
    epochs: int
    backend: str
    def __init__(self, batch_size: _Optional[int] = ..., epochs: _Optional[int] = ..., backend: _Optional[str] = ...) -> None: ...

class BlockDesc(_message.Message):
    __slots__ = ("name", "parent", "inputs", "outputs", "vars", "ops")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    VARS_FIELD_NUMBER: _ClassVar[int]
    OPS_FIELD_NUMBER: _ClassVar[int]
    name: str
    parent: int
    inputs: _containers.RepeatedScalarFieldContainer[str]
    outputs: _containers.RepeatedScalarFieldContainer[str]
    vars: _containers.RepeatedCompositeFieldContainer[VarDesc]
    ops: _containers.RepeatedCompositeFieldContainer[OpDesc]
    def __init__(self, name: _Optional[str] = ..., parent: _Optional[int] = ..., inputs: _Optional[_Iterable[str]] = ..., outputs: _Optional[_Iterable[str]] = ..., vars: _Optional[_Iterable[_Union[VarDesc, _Mapping]]] = ..., ops: _Optional[_Iterable[_Union[OpDesc, _Mapping]]] = ...) -> None: ...

class VarDesc(_message.Message):
    __slots__ = ("name", "dtype", "shape", "persistable", "parameter", "trainable", "stop_gradient", "initializer", "row_splits_of", "update", "sharding", "place")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    PERSISTABLE_FIELD_NUMBER: _ClassVar[int]
    PARAMETER_FIELD_NUMBER: _ClassVar[int]
    TRAINABLE_FIELD_NUMBER: _ClassVar[int]
    STOP_GRADIENT_FIELD_NUMBER: _ClassVar[int]
    INITIALIZER_FIELD_NUMBER: _ClassVar[int]
    ROW_SPLITS_OF_FIELD_NUMBER: _ClassVar[int]
    UPDATE_FIELD_NUMBER: _ClassVar[int]
    SHARDING_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    name: str
    dtype: DType
    shape: ShapeDesc
    persistable: bool
    parameter: bool
    trainable: bool
    stop_gradient: bool
    initializer: InitializerDesc
    row_splits_of: str
    update: UpdateSettingsDesc
    sharding: ShardingDesc
    place: int
    def __init__(self, name: _Optional[str] = ..., dtype: _Optional[_Union[DType, str]] = ..., shape: _Optional[_Union[ShapeDesc, _Mapping]] = ..., persistable: bool = ..., parameter: bool = ..., trainable: bool = ..., stop_gradient: bool = ..., initializer: _Optional[_Union[InitializerDesc, _Mapping]] = ..., row_splits_of: _Optional[str] = ..., update: _Optional[_Union[UpdateSettingsDesc, _Mapping]] = ..., sharding: _Optional[_Union[ShardingDesc, _Mapping]] = ..., place: _Optional[int] = ...) -> None: ...

class ShardingDesc(_message.Message):
    __slots__ = ("axis", "workers")
    AXIS_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    axis: int
    workers: int
    def __init__(self, axis: _Optional[int] = ..., workers: _Optional[int] = ...) -> None: ...

class UpdateSettingsDesc(_message.Message):
    __slots__ = ("rate_factor", "weight_decay", "l1", "l2", "clip_value", "clip_norm")
    RATE_FACTOR_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_DECAY_FIELD_NUMBER: _ClassVar[int]
    L1_FIELD_NUMBER: _ClassVar[int]
    L2_FIELD_NUMBER: _ClassVar[int]
    CLIP_VALUE_FIELD_NUMBER: _ClassVar[int]
    CLIP_NORM_FIELD_NUMBER: _ClassVar[int]
    rate_factor: float
    weight_decay: float
    l1: float
    l2: float
    clip_value: float
    clip_norm: float
    def __init__(self, rate_factor: _Optional[float] = ..., weight_decay: _Optional[float] = ..., l1: _Optional[float] = ..., l2: _Optional[float] = ..., clip_value: _Optional[float] = ..., clip_norm: _Optional[float] = ...) -> None: ...

class ShapeDesc(_message.Message):
    __slots__ = ("sizes",)
    SIZES_FIELD_NUMBER: _ClassVar[int]
    sizes: _containers.RepeatedCompositeFieldContainer[SizeDesc]
    def __init__(self, sizes: _Optional[_Iterable[_Union[SizeDesc, _Mapping]]] = ...) -> None: ...

class SizeDesc(_message.Message):
    __slots__ = ("number", "symbol")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    SYMBOL_FIELD_NUMBER: _ClassVar[int]
    number: int
    symbol: str
    def __init__(self, number: _Optional[int] = ..., symbol: _Optional[str] = ...) -> None: ...

class InitializerDesc(_message.Message):
    __slots__ = ("type", "attributes")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    type: str
    attributes: _containers.RepeatedCompositeFieldContainer[AttributeDesc]
    def __init__(self, type: _Optional[str] = ..., attributes: _Optional[_Iterable[_Union[AttributeDesc, _Mapping]]] = ...) -> None: ...

class OpDesc(_message.Message):
    __slots__ = ("type", "inputs", "outputs", "attributes", "role", "name")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    type: str
    inputs: _containers.RepeatedCompositeFieldContainer[SlotDesc]
    outputs: _containers.RepeatedCompositeFieldContainer[SlotDesc]
    attributes: _containers.RepeatedCompositeFieldContainer[AttributeDesc]
    role: Role
    name: str
    def __init__(self, type: _Optional[str] = ..., inputs: _Optional[_Iterable[_Union[SlotDesc, _Mapping]]] = ..., outputs: _Optional[_Iterable[_Union[SlotDesc, _Mapping]]] = ..., attributes: _Optional[_Iterable[_Union[AttributeDesc, _Mapping]]] = ..., role: _Optional[_Union[Role, str]] = ..., name: _Optional[str] = ...) -> None: ...

class SlotDesc(_message.Message):
    __slots__ = ("name", "vars")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VARS_FIELD_NUMBER: _ClassVar[int]
    name: str
    vars: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., vars: _Optional[_Iterable[str]] = ...) -> None: ...

class AttributeDesc(_message.Message):
    __slots__ = ("name", "int", "float", "bool", "string", "bytes", "ints", "floats", "strings", "shape", "dtype", "block", "var")
    NAME_FIELD_NUMBER: _ClassVar[int]
    INT_FIELD_NUMBER: _ClassVar[int]
    FLOAT_FIELD_NUMBER: _ClassVar[int]
    BOOL_FIELD_NUMBER: _ClassVar[int]
    STRING_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    INTS_FIELD_NUMBER: _ClassVar[int]
    FLOATS_FIELD_NUMBER: _ClassVar[int]
    STRINGS_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    VAR_FIELD_NUMBER: _ClassVar[int]
    name: str
    int: int
    float: float
    bool: bool
    string: str
    bytes: bytes
    ints: IntList
    floats: FloatList
    strings: StringList
    shape: ShapeDesc
    dtype: DType
    block: int
    var: str
    def __init__(self, name: _Optional[str] = ..., int: _Optional[int] = ..., float: _Optional[float] = ..., bool: bool = ..., string: _Optional[str] = ..., bytes: _Optional[bytes] = ..., ints: _Optional[_Union[IntList, _Mapping]] = ..., floats: _Optional[_Union[FloatList, _Mapping]] = ..., strings: _Optional[_Union[StringList, _Mapping]] = ..., shape: _Optional[_Union[ShapeDesc, _Mapping]] = ..., dtype: _Optional[_Union[DType, str]] = ..., block: _Optional[int] = ..., var: _Optional[str] = ...) -> None: ...

class IntList(_message.Message):
    __slots__ = ("values",)
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, values: _Optional[_Iterable[int]] = ...) -> None: ...

class FloatList(_message.Message):
    __slots__ = ("values",)
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, values: _Optional[_Iterable[float]] = ...) -> None: ...

class StringList(_message.Message):
    __slots__ = ("values",)
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, values: _Optional[_Iterable[str]] = ...) -> None: ...

class SourceDesc(_message.Message):
    __slots__ = ("strings", "blocks")
    STRINGS_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    strings: _containers.RepeatedScalarFieldContainer[str]
    blocks: _containers.RepeatedCompositeFieldContainer[BlockSourceDesc]
    def __init__(self, strings: _Optional[_Iterable[str]] = ..., blocks: _Optional[_Iterable[_Union[BlockSourceDesc, _Mapping]]] = ...) -> None: ...

class BlockSourceDesc(_message.Message):
    __slots__ = ("vars", "ops")
    VARS_FIELD_NUMBER: _ClassVar[int]
    OPS_FIELD_NUMBER: _ClassVar[int]
    vars: _containers.RepeatedCompositeFieldContainer[LocationDesc]
    ops: _containers.RepeatedCompositeFieldContainer[LocationDesc]
    def __init__(self, vars: _Optional[_Iterable[_Union[LocationDesc, _Mapping]]] = ..., ops: _Optional[_Iterable[_Union[LocationDesc, _Mapping]]] = ...) -> None: ...

class LocationDesc(_message.Message):
    __slots__ = ("file", "line", "function", "text")
    FILE_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    file: int
    line: int
    function: int
    text: int
    def __init__(self, file: _Optional[int] = ..., line: _Optional[int] = ..., function: _Optional[int] = ..., text: _Optional[int] = ...) -> None: ...

class OpProto(_message.Message):
    __slots__ = ("type", "signature", "doc", "inputs", "outputs", "attributes", "gradients")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    DOC_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    GRADIENTS_FIELD_NUMBER: _ClassVar[int]
    type: str
    signature: str
    doc: str
    inputs: _containers.RepeatedCompositeFieldContainer[SlotProto]
    outputs: _containers.RepeatedCompositeFieldContainer[SlotProto]
    attributes: _containers.RepeatedCompositeFieldContainer[AttributeProto]
    gradients: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, type: _Optional[str] = ..., signature: _Optional[str] = ..., doc: _Optional[str] = ..., inputs: _Optional[_Iterable[_Union[SlotProto, _Mapping]]] = ..., outputs: _Optional[_Iterable[_Union[SlotProto, _Mapping]]] = ..., attributes: _Optional[_Iterable[_Union[AttributeProto, _Mapping]]] = ..., gradients: _Optional[_Iterable[str]] = ...) -> None: ...

class SlotProto(_message.Message):
    __slots__ = ("name", "dtype", "shape", "optional", "variadic", "intermediate", "shape_only")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    OPTIONAL_FIELD_NUMBER: _ClassVar[int]
    VARIADIC_FIELD_NUMBER: _ClassVar[int]
    INTERMEDIATE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_ONLY_FIELD_NUMBER: _ClassVar[int]
    name: str
    dtype: str
    shape: str
    optional: bool
    variadic: bool
    intermediate: bool
    shape_only: bool
    def __init__(self, name: _Optional[str] = ..., dtype: _Optional[str] = ..., shape: _Optional[str] = ..., optional: bool = ..., variadic: bool = ..., intermediate: bool = ..., shape_only: bool = ...) -> None: ...

class AttributeProto(_message.Message):
    __slots__ = ("name", "type", "default", "required")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_FIELD_NUMBER: _ClassVar[int]
    REQUIRED_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: str
    default: str
    required: bool
    def __init__(self, name: _Optional[str] = ..., type: _Optional[str] = ..., default: _Optional[str] = ..., required: bool = ...) -> None: ...
