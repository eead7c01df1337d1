// A text that perplexity is measured on. Declared in sample_text.h.
    .section .rodata
    .global weir_suite_text
    .global weir_suite_text_end
weir_suite_text:
    .incbin "sample_text.txt"
weir_suite_text_end:
    .byte 0
    .section .note.GNU-stack, "", @progbits
