// The default model's files, as bytes of the binary's read-only data. Declared in default_model.h.
    .section .rodata
    .macro embed name, file
    .global weir_default_\name
    .global weir_default_\name\()_end
    .balign 4096
weir_default_\name:
    .incbin "\file"
weir_default_\name\()_end:
    .byte 0
    .endm
    embed config, "config.json"
    embed generation_config, "generation_config.json"
    embed tokenizer, "tokenizer.json"
    embed tokenizer_config, "tokenizer_config.json"
    embed weights, "model.safetensors"
    .section .note.GNU-stack, "", @progbits
