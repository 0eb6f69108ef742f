#include "core/lite/micro/board.h"

namespace lunaria::lite::micro {

// Without contractions a product and a sum are rounded one after the other, as everywhere else.
const std::string_view kMakefile = R"(# make: the library net.a; make test: runs the network on the samples of test.c.
CFLAGS ?= -O2
NET_FLAGS = -std=c99 -pedantic -ffp-contract=off -fno-strict-aliasing -Wall -Wextra -Wconversion -Wshadow

net.a: net.o weights.o
	$(AR) rcs $@ $^
%.o: %.c net.h weights.h
	$(CC) $(NET_FLAGS) $(CFLAGS) -c $< -o $@
net_test: test.o net.a
	$(CC) $(CFLAGS) $^ -lm -o $@
test: net_test
	./net_test
clean:
	rm -f *.o net.a net_test
.PHONY: test clean
)";

const std::string_view kCMake = R"(cmake_minimum_required(VERSION 3.13)
project(net C)
set(CMAKE_C_STANDARD 99)
set(CMAKE_C_EXTENSIONS OFF)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
add_library(net STATIC net.c weights.c)
target_include_directories(net PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
if(NOT MSVC)
  target_compile_options(net PRIVATE -ffp-contract=off -fno-strict-aliasing)
  target_link_libraries(net PUBLIC m)
endif()
enable_testing()
add_executable(net_test test.c)
target_link_libraries(net_test PRIVATE net)
add_test(NAME net_test COMMAND net_test)
)";

const std::string_view kBoardMakefile =
    R"(# make: net_test.elf for a Cortex-M4 with floats in hardware; make test: runs it in QEMU; make size: bytes of code and constants.
CROSS ?= arm-none-eabi-
CPU ?= -mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16 -mfloat-abi=hard
QEMU ?= qemu-system-arm -M mps2-an386
CFLAGS ?= -Os
NET_FLAGS = -std=c99 -pedantic -ffp-contract=off -fno-strict-aliasing -ffunction-sections -fdata-sections -Wall -Wextra -Wconversion -Wshadow

net_test.elf: test.o net.o weights.o board.o board.ld
	$(CROSS)gcc $(CPU) $(CFLAGS) --specs=rdimon.specs -nostartfiles -Wl,--gc-sections -T board.ld test.o net.o weights.o board.o -lm -o $@
%.o: %.c net.h weights.h
	$(CROSS)gcc $(CPU) $(NET_FLAGS) $(CFLAGS) -c $< -o $@
board.o: board.c
	$(CROSS)gcc $(CPU) -std=c99 $(CFLAGS) -c $< -o $@
test: net_test.elf
	$(QEMU) -nographic -monitor none -serial none -semihosting -kernel $<
size: net_test.elf
	$(CROSS)size net.o weights.o
clean:
	rm -f *.o net_test.elf
.PHONY: test size clean
)";

const std::string_view kBoardStart =
    R"(/* The start of a program on a Cortex-M4 with semihosting: what it prints goes to the debugger or to QEMU. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

extern uint32_t data_load, data_start, data_end, bss_start, bss_end, stack_top;
extern void initialise_monitor_handles(void);
extern int main(void);

void _init(void) {}
void _fini(void) {}

void reset(void) {
    /* Full access to the coprocessors 10 and 11, the floating-point unit. */
    *(volatile uint32_t *)0xE000ED88u |= 0xFu << 20;
    __asm volatile("dsb\n\tisb");
    memcpy(&data_start, &data_load, (size_t)((char *)&data_end - (char *)&data_start));
    memset(&bss_start, 0, (size_t)((char *)&bss_end - (char *)&bss_start));
    initialise_monitor_handles();
    exit(main());
}

static void stop(void) {
    for (;;) {
    }
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    &stack_top, (const void *)reset, (const void *)stop, (const void *)stop, (const void *)stop, (const void *)stop, (const void *)stop,
};
)";

const std::string_view kBoardScript = R"(/* Arm's MPS2 board: 4 MB of memory for code at 0, 4 MB for data. */
MEMORY {
    code (rx) : ORIGIN = 0x00000000, LENGTH = 4M
    data (rwx) : ORIGIN = 0x20000000, LENGTH = 4M
}
ENTRY(reset)
SECTIONS {
    .text : { KEEP(*(.vectors)) *(.text*) *(.rodata*) } >code
    .ARM.exidx : { *(.ARM.exidx*) } >code
    .data : ALIGN(8) { data_start = .; *(.data*) . = ALIGN(8); data_end = .; } >data AT>code
    data_load = LOADADDR(.data);
    .bss : ALIGN(8) { bss_start = .; *(.bss*) *(COMMON) . = ALIGN(8); bss_end = .; } >data
    end = .;
    stack_top = ORIGIN(data) + LENGTH(data);
}
)";

}  // namespace lunaria::lite::micro
