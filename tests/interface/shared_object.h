// shared_object.h - reads what the dynamic linker would: symbols and needed libraries of an ELF file.
#ifndef RONDO_TESTS_SHARED_OBJECT_H
#define RONDO_TESTS_SHARED_OBJECT_H

#include <elf.h>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

class SharedObject
{
  public:
    struct Symbol {
        uint64_t address;
        unsigned char binding; // STB_GLOBAL, STB_WEAK
    };

    explicit SharedObject(const std::string &path)
    {
        std::ifstream file(path, std::ios::binary | std::ios::ate);

        if (!file)
            throw std::runtime_error("cannot open " + path);
        bytes_.resize(static_cast<size_t>(file.tellg()));
        file.seekg(0);
        if (!file.read(bytes_.data(), static_cast<std::streamsize>(bytes_.size())))
            throw std::runtime_error("cannot read " + path);
        auto *header = at<Elf64_Ehdr>(0);
        for (unsigned i = 0; i < header->e_shnum; i++) {
            auto *section = at<Elf64_Shdr>(header->e_shoff + i * sizeof(Elf64_Shdr));
            if (section->sh_type != SHT_DYNSYM && section->sh_type != SHT_DYNAMIC)
                continue;
            auto *strings = at<Elf64_Shdr>(header->e_shoff + section->sh_link * sizeof(Elf64_Shdr));
            if (section->sh_type == SHT_DYNSYM)
                ReadSymbols(*section, strings->sh_offset);
            else
                ReadDynamic(*section, strings->sh_offset);
        }
    }

    std::map<std::string, Symbol> defined;
    std::vector<std::string> undefined;
    std::vector<std::string> needed;
    std::string soname;

  private:
    template <typename T> const T *at(size_t offset) const
    {
        return reinterpret_cast<const T *>(&bytes_.at(offset));
    }

    void ReadSymbols(const Elf64_Shdr &section, size_t strings)
    {
        for (size_t i = 1; i < section.sh_size / sizeof(Elf64_Sym); i++) {
            auto *symbol = at<Elf64_Sym>(section.sh_offset + i * sizeof(Elf64_Sym));
            std::string name = at<char>(strings + symbol->st_name);
            if (symbol->st_shndx == SHN_UNDEF)
                undefined.push_back(name);
            else
                defined[name] = {symbol->st_value,
                                 static_cast<unsigned char>(ELF64_ST_BIND(symbol->st_info))};
        }
    }

    void ReadDynamic(const Elf64_Shdr &section, size_t strings)
    {
        for (size_t i = 0; i < section.sh_size / sizeof(Elf64_Dyn); i++) {
            auto *entry = at<Elf64_Dyn>(section.sh_offset + i * sizeof(Elf64_Dyn));
            if (entry->d_tag == DT_NEEDED)
                needed.push_back(at<char>(strings + entry->d_un.d_val));
            if (entry->d_tag == DT_SONAME)
                soname = at<char>(strings + entry->d_un.d_val);
        }
    }

    std::vector<char> bytes_;
};

#endif
