// The catalogue of models, as bytes of the binary's read-only data (catalogue.cpp reads them).
    .section .rodata
    .global weir_catalogue_begin
    .global weir_catalogue_end
    .balign 64
weir_catalogue_begin:
    .incbin "catalogue.json"
weir_catalogue_end:

    .section .note.GNU-stack, "", @progbits
